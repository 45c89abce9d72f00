/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what a datagram's receive begins with: the header that it would have on
 * the wire.
 */
#include "internal.h"

/* IBTA 1.4, 8.3; of RoCE v2, IPv6's is the same but for next_header. */
struct grh {
    uint8_t version_class_flow[4];
    uint8_t payload_length[2];
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t sgid[16];
    uint8_t dgid[16];
};

/* RoCE v2 over IPv4: where a GRH would be, at its end. */
struct ip_header {
    uint8_t nothing[20];
    uint8_t version_length;
    uint8_t tos;
    uint8_t total_length[2];
    uint8_t id[2];
    uint8_t fragment[2];
    uint8_t ttl;
    uint8_t protocol;
    uint8_t checksum[2];
    uint8_t source[4];
    uint8_t destination[4];
};

#define GRH_NEXT_IBA    0x1b
#define NEXT_UDP        0x11

union header {
    struct grh grh;
    struct ip_header ip;
};

static uint16_t checksum(const uint8_t *bytes, unsigned int n)
{
    uint32_t sum = 0;
    unsigned int i;

    for ( i = 0; i < n; i += 2 )
        sum += bytes[i] << 8 | bytes[i + 1];
    while ( sum >> 16 )
        sum = (sum & 0xffff) + (sum >> 16);

    return ~sum;
}

static void make_grh(const struct vmri_av *av, const uint8_t sgid[16],
                     uint8_t next_header, uint32_t length, struct grh *grh)
{
    vmri_put_be(grh->version_class_flow,
                (6U << 28) | (av->traffic_class << 20) |
                (av->flow_label & 0xfffff), 4);
    vmri_put_be(grh->payload_length, length, 2);
    grh->next_header = next_header;
    grh->hop_limit = av->hop_limit;
    memcpy(grh->sgid, sgid, sizeof(grh->sgid));
    memcpy(grh->dgid, av->dgid, sizeof(grh->dgid));
}

static void make_ip(const struct vmri_av *av, const uint8_t sgid[16],
                    uint32_t length, struct ip_header *ip)
{
    const unsigned int nothing = offsetof(struct ip_header, version_length);

    memset(ip, 0, sizeof(*ip));
    ip->version_length = 0x45;
    ip->tos = av->traffic_class;
    vmri_put_be(ip->total_length, sizeof(*ip) - nothing + length, 2);
    ip->fragment[0] = 0x40;             /* not to be fragmented */
    ip->ttl = av->hop_limit;
    ip->protocol = NEXT_UDP;
    memcpy(ip->source, sgid + 12, sizeof(ip->source));
    memcpy(ip->destination, av->dgid + 12, sizeof(ip->destination));
    vmri_put_be(ip->checksum, checksum(&ip->version_length,
                                       sizeof(*ip) - nothing), 2);
}

void vmri_grh_make(bool roce, const struct vmri_av *av, const uint8_t sgid[16],
                   uint32_t length, uint8_t to[VMRI_GRH])
{
    union header header;

    BUILD_BUG_ON(sizeof(header) != VMRI_GRH || sizeof(header.ip) != VMRI_GRH);

    if ( roce && vmri_gid_is_ipv4(sgid) && vmri_gid_is_ipv4(av->dgid) )
        make_ip(av, sgid, length, &header.ip);
    else
        make_grh(av, sgid, roce ? NEXT_UDP : GRH_NEXT_IBA, length,
                 &header.grh);
    memcpy(to, &header, sizeof(header));
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
