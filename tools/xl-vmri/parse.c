/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers, GUIDs and key=value words of the command line.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "xl-vmri.h"

#define DEC_DIGITS "0123456789"
#define HEX_DIGITS DEC_DIGITS "abcdefABCDEF"
#define NAME_CHARACTERS DEC_DIGITS "-_." "abcdefghijklmnopqrstuvwxyz" \
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* strtoull() takes blanks, signs, prefixes: none of that is a number here. */
static bool has_only(const char *text, const char *digits)
{
    return *text && !text[strspn(text, digits)];
}

bool is_decimal(const char *text, uint64_t max, uint32_t *value)
{
    unsigned long long n;

    if (!has_only(text, DEC_DIGITS))
        return false;
    errno = 0;
    n = strtoull(text, NULL, 10);
    if (errno || n > max)
        return false;
    *value = n;
    return true;
}

bool parse_number(const char *what, const char *text, uint64_t min,
                  uint64_t max, uint64_t *value)
{
    bool hex = !strncasecmp(text, "0x", 2);
    const char *digits = hex ? text + 2 : text;
    unsigned long long n;

    if (!has_only(digits, hex ? HEX_DIGITS : DEC_DIGITS)) {
        report("%s: \"%s\" is not a number", what, text);
        return false;
    }

    errno = 0;
    n = strtoull(digits, NULL, hex ? 16 : 10);
    if (errno || n < min || n > max) {
        report("%s: %s is out of range (%llu to %llu)", what, text,
               (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    *value = n;
    return true;
}

bool parse_dev_id(const char *text, uint32_t *dev_id)
{
    uint64_t value;

    if (!parse_number("id", text, 0, VMRI_MAX_DEVS - 1, &value))
        return false;
    *dev_id = value;
    return true;
}

/* Without colons, or with all three. */
bool parse_guid(const char *text, uint64_t *guid)
{
    const char *s = strncasecmp(text, "0x", 2) ? text : text + 2;
    bool colons = strchr(s, ':');
    char digits[17] = "";
    unsigned int n;

    for (n = 0; n < 16; n++) {
        if (colons && n && n % 4 == 0 && *s++ != ':')
            break;
        if (!isxdigit((unsigned char)*s))
            break;
        digits[n] = *s++;
    }
    if (n < 16 || *s) {
        report("guid: \"%s\" is not 16 hexadecimal digits", text);
        return false;
    }

    *guid = strtoull(digits, NULL, 16);
    if (!*guid)
        report("guid: a GUID is not zero");
    return *guid;
}

const char *guid_text(uint64_t guid, char buffer[static GUID_TEXT_SIZE])
{
    snprintf(buffer, GUID_TEXT_SIZE, "%04x:%04x:%04x:%04x",
             (unsigned int)(guid >> 48), (unsigned int)(guid >> 32 & 0xffff),
             (unsigned int)(guid >> 16 & 0xffff),
             (unsigned int)(guid & 0xffff));
    return buffer;
}

bool parse_fabric(const char *text, struct vmri_ctl_fabric *fabric)
{
    uint64_t value = VMRI_FABRIC_ANY;

    if (isdigit((unsigned char)*text)) {
        if (!parse_number("fabric", text, 0, VMRI_FABRIC_MAX, &value))
            return false;
    } else if (!isalpha((unsigned char)*text) ||
               strlen(text) >= sizeof(fabric->name) ||
               text[strspn(text, NAME_CHARACTERS)]) {
        report("fabric: \"%s\" is neither a number nor a name (a letter, then "
               "up to %zu letters, digits, \"-\", \"_\", \".\")", text,
               sizeof(fabric->name) - 2);
        return false;
    } else {
        strcpy(fabric->name, text);
    }
    fabric->fabric = value;
    return true;
}

int parse_address(const char *text, uint8_t address[16])
{
    static const uint8_t mapped[V4_MAPPED_BITS / 8] = { [10] = 0xff, 0xff };

    if (inet_pton(AF_INET6, text, address) == 1)
        return 128;
    if (inet_pton(AF_INET, text, address + sizeof(mapped)) != 1)
        return -1;
    memcpy(address, mapped, sizeof(mapped));
    return 128 - V4_MAPPED_BITS;
}

bool is_mac(const char *text)
{
    unsigned int i;

    for (i = 0; i < MAC_TEXT_SIZE - 1; i++)
        if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
            return false;
    /* Not a group's: the last bit of the first byte. */
    return !text[i] && strchr("02468aceACE", text[1]);
}

static bool parse_mac(const char *text, char mac[MAC_TEXT_SIZE])
{
    if (!is_mac(text)) {
        report("mac: \"%s\" is not the MAC address of an interface", text);
        return false;
    }
    memcpy(mac, text, MAC_TEXT_SIZE);
    return true;
}

/*
 * The words of attach.  LID and GUID have a value that stands for "choose one",
 * which is said by leaving them out.
 */
bool parse_attach(int argc, char **argv, struct vmri_ctl_attach *attach,
                  struct vmri_ctl_fabric *fabric, char mac[MAC_TEXT_SIZE])
{
    static const struct {
        const char *name;
        uint64_t min, max;
    } keys[] = {
        { "lid", 1, VMRI_LID_MAX },
        { "id", 0, VMRI_MAX_DEVS - 1 },
        { "group", 1, UINT32_MAX },
        { "guid", 0, 0 },
        { "sm", 0, 1 },
        { "uplink", 1, VMRI_UPLINKS },
        { "fabric", 0, 0 },
        { "mac", 0, 0 },
    };
    enum { LID, ID, GROUP, GUID, SM, UPLINK, FABRIC, MAC };
    bool seen[ARRAY_SIZE(keys)] = { false };
    uint64_t values[ARRAY_SIZE(keys)] = { [ID] = VMRI_DEV_ANY };
    int i;

    for (i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        size_t length = equals ? (size_t)(equals - argv[i]) : 0;
        unsigned int k;
        bool ok;

        for (k = 0; k < ARRAY_SIZE(keys); k++)
            if (length && length == strlen(keys[k].name) &&
                !strncmp(argv[i], keys[k].name, length))
                break;
        if (k == ARRAY_SIZE(keys)) {
            report("\"%s\" is not one of fabric=NAME, lid=N, guid=G, id=N, "
                   "group=N, mac=M, sm=1, uplink=N", argv[i]);
            return false;
        }
        if (seen[k]) {
            report("%s is given twice", keys[k].name);
            return false;
        }
        seen[k] = true;
        if (k == FABRIC)
            ok = parse_fabric(equals + 1, fabric);
        else if (k == GUID)
            ok = parse_guid(equals + 1, &values[k]);
        else if (k == MAC)
            ok = parse_mac(equals + 1, mac);
        else
            ok = parse_number(keys[k].name, equals + 1, keys[k].min,
                              keys[k].max, &values[k]);
        if (!ok)
            return false;
    }

    attach->lid = values[LID];
    attach->dev_id = values[ID];
    attach->guid = values[GUID];
    attach->group = values[GROUP];
    attach->uplink = values[UPLINK];
    attach->flags = values[SM] ? VMRI_ATTACH_SM : 0;
    return true;
}

bool parse_amount(const char *what, const char *text, uint64_t max,
                         uint64_t *value)
{
    static const char units[] = "KMGT";
    size_t length = strlen(text);
    const char *unit = length ? strchr(units, toupper(text[length - 1])) : NULL;
    unsigned int shift = 0;
    char number[24];

    if (unit && *unit) {
        shift = 10 * (unit - units + 1);
        length--;
    }
    if (length >= sizeof(number)) {
        report("%s: \"%s\" is not a number", what, text);
        return false;
    }
    memcpy(number, text, length);
    number[length] = '\0';
    if (!parse_number(what, number, 0, max >> shift, value))
        return false;
    *value <<= shift;
    return true;
}

bool parse_delay(const char *text, double *seconds)
{
    if (has_only(text, DEC_DIGITS ".")) {
        char *end;

        *seconds = strtod(text, &end);
        if (!*end && *seconds >= 0.1 && *seconds <= 3600)
            return true;
    }
    report("delay: \"%s\" is not a number of seconds from 0.1 to 3600", text);
    return false;
}
