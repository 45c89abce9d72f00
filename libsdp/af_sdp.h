/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The address families of the Sockets Direct Protocol, as OFED had numbered them. Only
 * sockets of type SOCK_STREAM exist of them. Linux has since given 27 to AF_IB, of which
 * it has no sockets, and 28 to AF_MPLS, likewise.
 */
#ifndef AF_SDP_H
#define AF_SDP_H

#define AF_INET_SDP	27
#define PF_INET_SDP	AF_INET_SDP
#define AF_INET6_SDP	28
#define PF_INET6_SDP	AF_INET6_SDP

#endif
