# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The two hosts as a cluster, for suites in a lab of two, included after suite.sh, life.sh
# and hosts.sh: etcd in dom0, at its address on the link, and vmri-fabricd in both dom0s.

# Seconds after which a host that is not heard of may lose its claims.
LEASE=10
ETCD_PORT=2379

# ---- etcd ----

# With what it had, if it ran before.
start_etcd() {
	local url peers=http://127.0.0.1:$((ETCD_PORT + 1))
	url=http://$(link_address dom0):$ETCD_PORT
	background dom0 etcd "etcd --data-dir /tmp/etcd-data --unsafe-no-fsync --logger zap \
		--log-level warn --listen-client-urls $url --advertise-client-urls $url \
		--listen-peer-urls $peers --initial-advertise-peer-urls $peers \
		--initial-cluster default=$peers"
	wait_until 60 cluster dom0 fabric list
}

# cut_off HOST: from etcd, silently; what else is on the link goes on.
cut_off() {
	on "$1" "tc qdisc add dev eth1 clsact &&
		tc filter add dev eth1 egress protocol ip flower ip_proto tcp \
			dst_port $ETCD_PORT action drop &&
		tc filter add dev eth1 ingress protocol ip flower ip_proto tcp \
			src_port $ETCD_PORT action drop"
}

heal() {
	on "$1" "tc qdisc del dev eth1 clsact"
}

# ---- the daemons ----

configure() {
	put "$1" /etc/vmri/fabricd.conf <<-CONFIG
		endpoints = http://$(link_address dom0):$ETCD_PORT
		device = rxe0
		host = $1
		lease = $LEASE
		layer2 = /usr/sbin/vmri-bridge
	CONFIG
}

start_daemon() {
	background "$1" fabricd vmri-fabricd run
}

# end_daemon HOST [SIGNAL]: and wait for its end.
end_daemon() {
	on "$1" "pid=\$(pgrep -x vmri-fabricd) && kill -${2:-TERM} \$pid"
	wait_until 30 on "$1" "! pgrep -x vmri-fabricd"
}

# cluster HOST WORD...: what an operator says there.
cluster() {
	local host=$1
	shift
	on "$host" "vmri-fabricd $*"
}

# daemon_said HOST TEXT [TIMES]: since it was started.
daemon_said() {
	[ "$(on "$1" "grep -cF '$2' /tmp/fabricd.out")" -ge "${3:-1}" ]
}

# host_is HOST STATE: as dom0 lists it.
host_is() {
	cluster dom0 host list | awk -v host="$1" -v state="$2" '
		$1 == host { found = $3 == state }
		END { exit !found }'
}

# ---- what VMRI has ----

# has_fabric HOST TENANT: and the bridge that its layer 2 is.
has_fabric() {
	on "$1" "xl-vmri fabric list | grep -E '^ *${FABRIC[$2]} +$2 ' &&
		ip link show vmri${FABRIC[$2]}"
}

lacks_fabric() {
	on "$1" "xl-vmri fabric list >/tmp/fabrics && ! grep -w $2 /tmp/fabrics"
}

# has_route HOST ADDRESS: of the red tenant, to the other host.
has_route() {
	on "$1" "xl-vmri route list red" |
		grep -qE "::ffff:$2 +::ffff:$(link_address "$(other_host "$1")") *\$"
}

lacks_route() {
	on "$1" "xl-vmri route list red" >"$WORK/routes" && ! grep -q ":$2 " "$WORK/routes"
}

# has_rule HOST PREFIX: one of the red tenant's that names it.
has_rule() {
	on "$1" "xl-vmri rule list red" | awk -v prefix="$2" '
		$5 == prefix { found = 1 }
		END { exit !found }'
}

lacks_rule() {
	on "$1" "xl-vmri rule list red" >"$WORK/rules" && ! grep -qF " $2 " "$WORK/rules"
}
