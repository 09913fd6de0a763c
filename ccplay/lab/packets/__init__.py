"""Common parts of the delay line and the software queue: processes of the lab that hold packets."""
