/* SPDX-License-Identifier: MIT
 *
 * Hybla: scales growth by the RTT, so that cwnd grows as fast on satellite paths as on short ones.
 *
 * Caini, Firrincieli, TCP Hybla: a TCP Enhancement for Heterogeneous Networks, International Journal of
 * Satellite Communications and Networking 22, 2004, equation 10. The rate grows as fast as Reno's on a
 * path with RTT0 = 25 ms. With rho = RTT / RTT0, at least 1, on each ACK:
 *	slow start	cwnd += 2^rho - 1
 *	avoidance	cwnd += rho^2 / cwnd, which is rho^2 per RTT
 * A loss halves cwnd, as in Reno. RTT is the minimum seen, as in Linux, so that the connection's own
 * queue does not accelerate it. Here rho is at most 16 (400 ms) and slow start ends exactly at ssthresh.
 * The paper's initial window and ssthresh, rho times larger, and its pacing are omitted.
 */
#include "ccplay_cc.h"

#define RTT0_US 25000
#define MOST 16

struct hybla {
	u32 base_rtt;
	u32 rest; /* fraction of a segment, see grow() */
};

SHOWN("hybla_rho_1000 hybla_base_rtt_us");

/* rho in thousandths. */
static __always_inline u64 rho(const struct hybla *h)
{
	u64 ratio = (u64)h->base_rtt * 1000 / RTT0_US;

	return max(min(ratio, MOST * 1000ULL), 1000ULL);
}

/* 2^x, both in thousandths; linear between whole numbers, at most 6 % too high. */
static __always_inline u64 power_of_2(u64 x)
{
	return (1000 + x % 1000) << (x / 1000 & 31);
}

PKTS_ACKED(sk, sample)
{
	struct hybla *h = PRIVATE(sk, struct hybla);

	if (sample->rtt_us > 0)
		h->base_rtt = least(h->base_rtt, sample->rtt_us);
	SHOW(sk, rho(h), h->base_rtt);
}

CONG_AVOID(sk, ack, acked)
{
	struct hybla *h = PRIVATE(sk, struct hybla);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 r = rho(h);

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		grow_by(tp, &h->rest, (power_of_2(r) - 1000) * 1000000 * acked);
		set_cwnd(tp, min(tp->snd_cwnd, tp->snd_ssthresh));
	} else {
		grow(tp, &h->rest, r * r / 1000, acked);
	}
}

SSTHRESH(sk)
{
	return reno_ssthresh(sk);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL hybla = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
