# SPDX-License-Identifier: GPL-2.0-only
# From gcov's summary, the lines of xen/vmri's files, and their sum.
# Fails when that is less than `min` percent.
/^File / { file = $0; sub(/^File '/, "", file); sub(/'$/, "", file) }
/^Lines executed:/ && file ~ /xen\/vmri\/[a-z_]*\.c$/ && !seen[file]++ {
	split($0, part, /[:% ]+/)
	n = $NF
	percent = part[3]
	sub(/.*\//, "", file)
	printf "%-14s %6.1f%% of %d\n", file, percent, n
	lines += n
	run += n * percent / 100
	file = ""
}
END {
	all = lines ? 100 * run / lines : 0
	printf "%-14s %6.1f%% of %d\n", "all", all, lines
	exit all < min
}
