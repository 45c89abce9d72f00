# SPDX-License-Identifier: GPL-2.0-only
#
# The table of what suites measured. A line of the input is KEY <tab> VALUE; a
# key "PROGRAM SIZE WAY" makes a cell of the row PROGRAM SIZE.

BEGIN {
	FS = "\t"
	heading["softib"] = "SoftIB"
	heading["rxe"] = "Soft-RoCE"
	heading["tcp"] = "TCP"
	heading["memory"] = "memory copy"
	ways = split("softib rxe tcp memory", order, " ")
	for (i = 1; i <= ways; i++)
		known[order[i]] = 1
}

{
	words = split($1, word, " ")
	way = word[words]
	row = $1
	sub(/ [^ ]*$/, "", row)
	if (!known[way]) {
		known[way] = 1
		heading[way] = way
		order[++ways] = way
	}
	if (!(row in seen)) {
		seen[row] = 1
		rows[++count] = row
	}
	cell[row, way] = $2
	used[way] = 1
}

END {
	printf "%-30s", ""
	for (i = 1; i <= ways; i++)
		if (used[order[i]])
			printf "  %14s", heading[order[i]]
	print ""
	for (r = 1; r <= count; r++) {
		printf "%-30s", rows[r]
		for (i = 1; i <= ways; i++)
			if (used[order[i]])
				printf "  %14s", (rows[r], order[i]) in cell ? cell[rows[r], order[i]] : "-"
		print ""
	}
}
