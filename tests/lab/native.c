/* An algorithm's own source, SOURCE, as a library for this machine: its operations are called as the
 * kernel calls them, on a struct tcp_sock of nothing but what they read.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
/* The one bit that is asked for so, is_cwnd_limited, is the lowest of snd_cwnd_clamp here: set. */
#define __builtin_preserve_field_info(field, what)                                     \
	((what) == 0 ? __builtin_offsetof(struct tcp_sock, snd_cwnd_clamp) : (what) == 1)

#include SOURCE

#undef tcp_cong_avoid_ai

/* What the kernel lends, as its documentation has it. */
u32 divided_by_zero;

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 grown = min(acked, tp->snd_ssthresh - tp->snd_cwnd);

	set_cwnd(tp, tp->snd_cwnd + grown);
	return acked - grown;
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (!w) {
		divided_by_zero++;
		return;
	}
	tp->snd_cwnd_cnt += acked;
	set_cwnd(tp, tp->snd_cwnd + tp->snd_cwnd_cnt / w);
	tp->snd_cwnd_cnt %= w;
}

struct shown now_shown;

static void *look_up(void *map, const void *key)
{
	return &now_shown;
}

void open_socket(struct sock *sk)
{
	bpf_map_lookup_elem = look_up;
	sk->__sk_common.skc_cookie.counter = 1;
	tcp_sk(sk)->snd_cwnd_clamp = 0xffffffff;
}

u32 socket_size(void)
{
	return sizeof(struct tcp_sock);
}

#define FIELD(type, name)                                                      \
	type *field_##name(struct sock *sk)                                    \
	{                                                                      \
		return &tcp_sk(sk)->name;                                      \
	}

FIELD(u32, snd_cwnd)
FIELD(u32, snd_ssthresh)
FIELD(u32, snd_cwnd_clamp)
FIELD(u32, snd_una)
FIELD(u32, snd_nxt)
FIELD(u32, srtt_us)
FIELD(u32, mss_cache)
FIELD(u64, tcp_mstamp)

/* Operations that a file may do without. */
__attribute__((weak)) void cc_init(u64 *words);
__attribute__((weak)) void cc_in_ack_event(u64 *words);
__attribute__((weak)) void cc_pkts_acked(u64 *words);
__attribute__((weak)) void cc_set_state(u64 *words);
__attribute__((weak)) void cc_cwnd_event(u64 *words);
__attribute__((weak)) void cc_cong_avoid(u64 *words);
__attribute__((weak)) void cc_cong_control(u64 *words);

#define CALL(operation, ...)                                                   \
	do {                                                                   \
		if (operation)                                                 \
			operation((u64[]){ __VA_ARGS__ });                     \
	} while (0)

void begin(struct sock *sk)
{
	CALL(cc_init, (u64)sk);
}

/* A window is acknowledged, `acked` segments an ACK; of a thousand segments `marked` met congestion. */
void round_trip(struct sock *sk, u32 rtt_us, u32 acked, u32 marked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 start = tp->tcp_mstamp;
	u32 window = tp->snd_cwnd, done = 0, segments;

	for (; done < window; done += segments) {
		struct ack_sample sample = { .rtt_us = rtt_us };

		segments = sample.pkts_acked = min(acked, window - done);
		tp->tcp_mstamp = start + (u64)rtt_us * (done + segments) / window;
		tp->srtt_us = 8 * rtt_us;
		tp->snd_una += segments * tp->mss_cache;
		/* A window is always under way. */
		tp->snd_nxt = tp->snd_una + max(tp->snd_cwnd, window) * tp->mss_cache;
		tp->delivered += segments;
		tp->delivered_ce += (u64)(done + segments) * marked / 1000 - (u64)done * marked / 1000;
		CALL(cc_in_ack_event, (u64)sk, 0);
		CALL(cc_pkts_acked, (u64)sk, (u64)&sample);
		CALL(cc_cong_avoid, (u64)sk, tp->snd_una, segments);
		struct rate_sample rate = { .acked_sacked = segments };
		u64 words[4] = { (u64)sk };

		words[RATE_ARGUMENT] = (u64)&rate;
		if (cc_cong_control)
			cc_cong_control(words);
	}
}

/* Congestion is found, as tcp_init_cwnd_reduction() and tcp_enter_loss() have it, and repaired. */
void congestion(struct sock *sk, u32 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = cc_ssthresh((u64[]){ (u64)sk });
	if (state == TCP_CA_Loss)
		CALL(cc_cwnd_event, (u64)sk, CA_EVENT_LOSS);
	CALL(cc_set_state, (u64)sk, state);
	tp->snd_cwnd = state == TCP_CA_Loss ? 1 : tp->snd_ssthresh;
	CALL(cc_set_state, (u64)sk, TCP_CA_Open);
}

void undo(struct sock *sk)
{
	tcp_sk(sk)->snd_cwnd = cc_undo_cwnd((u64[]){ (u64)sk });
}
