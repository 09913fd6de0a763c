# Completion of ccplay for bash, made by `ccplay completion bash`.
_ccplay() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} options="" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] && [[ $current != -* ]]; then
    COMPREPLY=($(compgen -W "play replay watch run compare report export lesson new check list doctor evaluate trace config completion guest cluster" -- "$current") $(compgen -f -X '!*.toml' -- "$current"))
    return
  fi
  case " play replay watch run compare report export lesson new check list doctor evaluate trace config completion guest cluster " in *" $command "*) ;; *) command=play ;; esac
  case $command:$before in
    play:--topology) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--topo) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--custom) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--case) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--set) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--record) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--capture) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--captures) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--host) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--kernel) COMPREPLY=($(compgen -W "host guest auto" -- "$current")); return ;;
    play:--algorithm) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--discipline) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--hz) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--theme) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--ghost) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--share-group) COMPREPLY=($(compgen -f -- "$current")); return ;;
    play:--web) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--speed) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--at) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--window) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--theme) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--ghost) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--share-group) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--web) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--picture) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--out) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--cast) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--from) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--to) COMPREPLY=($(compgen -f -- "$current")); return ;;
    replay:--size) COMPREPLY=($(compgen -f -- "$current")); return ;;
    watch:--web) COMPREPLY=($(compgen -f -- "$current")); return ;;
    watch:--window) COMPREPLY=($(compgen -f -- "$current")); return ;;
    watch:--theme) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--topology) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--topo) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--custom) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--case) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--set) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--record) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--capture) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--captures) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--host) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--kernel) COMPREPLY=($(compgen -W "host guest auto" -- "$current")); return ;;
    run:--algorithm) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--discipline) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--hz) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--out) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--jobs) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--cluster) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--certificate) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--repeats) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--until-ci) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--metric) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--max-repeats) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--share-group) COMPREPLY=($(compgen -f -- "$current")); return ;;
    run:--web) COMPREPLY=($(compgen -f -- "$current")); return ;;
    compare:--speed) COMPREPLY=($(compgen -f -- "$current")); return ;;
    compare:--theme) COMPREPLY=($(compgen -f -- "$current")); return ;;
    report:--out|report:--to) COMPREPLY=($(compgen -f -- "$current")); return ;;
    report:--plot) COMPREPLY=($(compgen -f -- "$current")); return ;;
    export:--to|export:--out) COMPREPLY=($(compgen -f -- "$current")); return ;;
    export:--format) COMPREPLY=($(compgen -W "csv parquet scenario" -- "$current")); return ;;
    export:--table) COMPREPLY=($(compgen -W "runs tcp queues downloads pings udp short-flows calls monitor intervals interfaces sojourn-times trace ca-states events variables queue-variables health" -- "$current")); return ;;
    export:--interval) COMPREPLY=($(compgen -f -- "$current")); return ;;
    export:--until) COMPREPLY=($(compgen -f -- "$current")); return ;;
    export:--title) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--hand-in) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--host) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--kernel) COMPREPLY=($(compgen -W "host guest auto" -- "$current")); return ;;
    lesson:--algorithm) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--discipline) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--hz) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--theme) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--share-group) COMPREPLY=($(compgen -f -- "$current")); return ;;
    lesson:--web) COMPREPLY=($(compgen -f -- "$current")); return ;;
    new:--from) COMPREPLY=($(compgen -f -- "$current")); return ;;
    list:--delete) COMPREPLY=($(compgen -f -- "$current")); return ;;
    doctor:--host) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--discipline) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--against) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--only) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--out) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--baseline) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--jobs) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--repeats) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--until-ci) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--cluster) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--certificate) COMPREPLY=($(compgen -f -- "$current")); return ;;
    evaluate:--host) COMPREPLY=($(compgen -f -- "$current")); return ;;
    cluster:--certificate) COMPREPLY=($(compgen -f -- "$current")); return ;;
    cluster:--jobs) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case $command in
    play) options="--help --topology --topo --custom --case --set --record --capture --captures --host --guest --kernel --algorithm --discipline --hz --theme --ascii --ghost --share --share-group --web --no-record"; words="aqm bufferbloat dctcp eight fabric home incast l4s moving mptcp parking-lot playground race-long race-queues race references rrul short-flows udp-vs-tcp variants written" ;;
    replay) options="--help --speed --at --window --theme --ascii --ghost --share --share-group --web --picture --out --cast --from --to --size"; words="" ;;
    watch) options="--help --web --list --from-now --restricted --window --theme --ascii"; words="" ;;
    run) options="--help --topology --topo --custom --case --set --record --capture --captures --host --guest --kernel --algorithm --discipline --hz --out --jobs --cluster --certificate --mixed-kernels --detach --attach --cancel --repeats --until-ci --metric --max-repeats --receiver --report --share --share-group --web --json"; words="aqm bufferbloat dctcp eight fabric home incast l4s moving mptcp parking-lot playground race-long race-queues race references rrul short-flows udp-vs-tcp variants written" ;;
    compare) options="--help --table --all --json --speed --theme --ascii"; words="" ;;
    report) options="--help --out --to --all --plot"; words="" ;;
    export) options="--help --to --out --format --table --interval --until --title"; words="" ;;
    lesson) options="--help --check --headless --json --restart --hand-in --host --guest --kernel --algorithm --discipline --hz --theme --ascii --share --share-group --web"; words="slow-start aimd bufferbloat bufferbloat-lab cubic-beside-reno loss-is-not-congestion delay-based aqm ecn-dctcp rtt-unfairness train your-own-algorithm" ;;
    new) options="--help --from"; words="scenario lesson algorithm discipline" ;;
    check) options="--help"; words="" ;;
    list) options="--help --json --delete --clear"; words="scenarios lessons sessions algorithms disciplines" ;;
    doctor) options="--help --all --json --host --guest"; words="" ;;
    evaluate) options="--help --discipline --against --only --quick --references --list --out --baseline --jobs --repeats --until-ci --cluster --certificate --mixed-kernels --host --guest --json --lines"; words="" ;;
    trace) options="--help"; words="" ;;
    config) options="--help"; words="preferences schema" ;;
    completion) options="--help"; words="bash zsh fish" ;;
    guest) options="--help"; words="" ;;
    cluster) options="--help --certificate --jobs"; words="certificate worker" ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _ccplay ccplay
