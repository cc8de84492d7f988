# Makes the README's tables of what the benchmarks print: of all runs of a line the
# shortest time, which other work on the machine has lengthened least, and how many
# times the classifier's that is. Times are those of the processor, except in the
# table of the caches, where goroutines wait for one another.
#
#	go test -c -o parsers.test
#	for i in {1..10}; do ./parsers.test -test.run '^$' -test.bench . ; done | awk -f table.awk

# least returns the least number of a list.
function least(list, a, n, i, x) {
	n = split(list, a, " ")
	x = a[1] + 0
	for (i = 2; i <= n; i++) if (a[i] + 0 < x) x = a[i] + 0
	return x
}

# number is x in whole numbers from 10 on, the thousands set apart.
function number(x, s, out) {
	if (x < 100) return sprintf(x < 10 ? "%.1f" : "%.0f", x)
	for (s = sprintf("%.0f", x); length(s) > 3; s = substr(s, 1, length(s)-3)) out = " " substr(s, length(s)-2) out
	return s out
}

/^Benchmark(Short|Long|Cache)\// {
	name = $1
	sub(/-[0-9]+$/, "", name) # GOMAXPROCS
	k = split(name, part, "/")
	for (i = 2; i <= k; i++) { split(part[i], kv, "="); field[kv[1]] = kv[2] }
	if (name ~ /^BenchmarkCache/) {
		group = "Cache"; row = field["cache"]; column = "texts=" field["texts"] " goroutines=" field["goroutines"]
	} else {
		group = field["dialect"]; row = field["statement"] "|" field["bytes"]; column = field["parser"]
	}
	if (!((group) in columns)) order[++groups] = group
	if (!((group, column) in known)) { known[group, column]; columns[group] = columns[group] ";" column }
	if (!((group, row) in known)) { known[group, row]; rows[group] = rows[group] ";" row }
	for (i = 3; i < NF; i += 2) seen[group, row, column, $(i+1)] = seen[group, row, column, $(i+1)] " " $i
}

END {
	for (g = 1; g <= groups; g++) {
		group = order[g]
		cache = group == "Cache"
		nc = split(substr(columns[group], 2), c, ";")
		nr = split(substr(rows[group], 2), r, ";")
		line = "| " group (cache ? "" : " | bytes") " |"
		rule = "|---|" (cache ? "" : "--:|")
		for (j = 1; j <= nc; j++) {
			line = line " " c[j] " |"; rule = rule "--:|"
			if (c[j] == "classify") { line = line " MB/s |"; rule = rule "--:|" }
		}
		print line; print rule
		for (i = 1; i <= nr; i++) {
			split(r[i], label, "|")
			line = "| " label[1] (cache ? "" : " | " number(label[2])) " |"
			for (j = 1; j <= nc; j++) {
				key = group SUBSEP r[i] SUBSEP c[j]
				unit = cache ? "ns/op" : "cpu-ns/op"
				if (!((key, unit) in seen)) { line = line " – |"; continue }
				ns = least(seen[key, unit])
				line = line " " number(ns)
				if (c[j] == "classify") ours = ns
				else if (!cache) line = line " ×" number(ns / ours)
				line = line " |"
				if (c[j] == "classify") line = line " " number(label[2] * 1000 / ns) " |"
			}
			print line
		}
		print ""
	}
}
