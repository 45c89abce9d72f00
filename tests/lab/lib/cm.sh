# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# librdmacm's programs between the guests, included after suite.sh and perf.sh. The servers
# are in d1. CONNECTIONS is how many cmtime makes.

# plan_program WAY PROGRAM ADDRESS: a pair of it, known by all three. cmtime knows no
# IPv6.
plan_program() {
	local server client
	case $2 in
	rping)
		server="rping -s -a $3 -p @PORT@ -C 10 -S 65000 -V"
		client="rping -c -a $3 -p @PORT@ -C 10 -S 65000 -V"
		;;
	cmtime)
		server="cmtime -b $3 -p @PORT@ -c $CONNECTIONS"
		client="cmtime -s $3 -p @PORT@ -c $CONNECTIONS"
		;;
	rstream | riostream)
		server="$2 -b $3 -p @PORT@ -S 65536 -C 20 -I 4 -T v"
		client="$2 -s $3 -p @PORT@ -S 65536 -C 20 -I 4 -T v"
		;;
	esac
	plan_pair "$*" "$server" "$client"
}

# programs WAY ADDRESS CLIENT PROGRAM...: from the client to the address, one of d1.
programs() {
	local way=$1 address=$2 client=$3 program
	shift 3
	for program in "$@"; do
		plan_program "$way" "$program" "$address"
	done
	CLIENT_HOST=$client run_plan
	for program in "$@"; do
		check "$way: $program, $client to $address" went_well "$way $program $address"
	done
}

# listens HOST PORT
listens() {
	wait_until 30 on "$1" "rdma resource show cm_id | grep -q 'LISTEN.*:$2 '"
}

# several PROGRAM ADDRESS CLIENT PORT WORDS: connections at once. A client that comes
# too early would break off with some of them made, and the server give up.
several() {
	local program=$1 address=$2 client=$3 port=$4 words=$5
	background d1 "$program" "timeout --foreground $LIMIT $program -b $address $words"
	listens d1 "$port" && on "$client" "$program -s $address $words" &&
		wait_until 30 on d1 "grep -qx 0 /tmp/$program.rc"
	show_server "$program" $?
}

# show_server PROGRAM STATUS: what it said in d1, before that status.
show_server() {
	on d1 "cat /tmp/$1.out"
	return "$2"
}

# Of queue pairs, and of datagrams; udaddy has one port, which it cannot be told.
several_of_each() {
	local way=$1 address=$2 client=$3 count=$4 port=$((NEXT_PORT++))
	check "$way: ucmatose, $count connections, $client to $address" several ucmatose \
		"$address" "$client" "$port" "-p $port -c $count -C 20 -S 4096"
	check "$way: udaddy, $client to $address" several udaddy \
		"$address" "$client" 7174 "-c 4 -C 20 -S 1024"
}

# What d2 sends to the group reaches d1, which is in it.
groups() {
	local address1=$1 address2=$2 group=$3
	background d1 mckey "timeout --foreground $LIMIT stdbuf -oL mckey -m $group -b $address1 -C 10 -S 1024"
	wait_until 30 on d1 "grep -q 'joined dgid' /tmp/mckey.out" &&
		on d2 "mckey -m $group -b $address2 -s -C 10 -S 1024" &&
		wait_until 30 on d1 "grep -qx 0 /tmp/mckey.rc"
	show_server mckey $?
}
