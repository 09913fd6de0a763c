"""What the delay line and the software queue share: processes beside the lab that hold packets."""
