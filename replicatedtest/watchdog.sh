# Watches over database servers on behalf of a test. Reads "run PID" and
# "gone PID" from standard input; when that ends, the test has ended, in
# whatever way: kills the servers that still run and removes their directory.
trap '' HUP INT QUIT TERM PIPE
dir=$1
pids=' '
while read -r what pid; do
	case $what in
	run) pids="$pids$pid " ;;
	gone)
		rest=' '
		for p in $pids; do [ "$p" = "$pid" ] || rest="$rest$p "; done
		pids=$rest
		;;
	esac
done

# A process is ours only if its command line names our directory: the number
# of a server that has ended may have gone to another process.
ours() {
	if [ -r "/proc/$1/cmdline" ]; then
		tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$dir/"
	else
		ps -ww -o args= -p "$1" 2>/dev/null | grep -qF -- "$dir/"
	fi
}

children() {
	if [ -r /proc/self/stat ]; then
		for stat in /proc/[0-9]*/stat; do
			{ read -r line <"$stat"; } 2>/dev/null || continue
			child=${line%% *}
			# After the name, which may hold anything: state, parent.
			set -- "$1" ${line##*) }
			[ "$3" = "$1" ] && echo "$child"
		done
	else
		ps -A -o pid= -o ppid= | while read -r child parent; do
			[ "$parent" = "$1" ] && echo "$child"
		done
	fi
}

all=
for pid in $pids; do
	ours "$pid" || continue
	# Stopped, it forks no more, and its children stay its children.
	kill -STOP "$pid" 2>/dev/null
	family="$(children "$pid") $pid"
	all="$all $family"
	kill -KILL $family 2>/dev/null
done
tries=0
for pid in $all; do
	while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do
		# One that nobody collects is dead all the same.
		{ read -r line <"/proc/$pid/stat"; } 2>/dev/null && case ${line##*) } in Z*) break ;; esac
		tries=$((tries + 1))
		sleep 0.05
	done
done

# A PostgreSQL server that was killed leaves a System V shared memory segment,
# whose number is on line 7 of its lock file.
for lock in "$dir"/*/data/postmaster.pid; do
	[ -r "$lock" ] || continue
	set -- $(sed -n 7p "$lock")
	[ -n "$2" ] && ipcrm -m "$2" 2>/dev/null
done

case $dir in
*/replicatedtest-*)
	tries=0
	until rm -rf -- "$dir" 2>/dev/null || [ "$tries" -ge 20 ]; do
		tries=$((tries + 1))
		sleep 0.05
	done
	;;
esac
exit 0
