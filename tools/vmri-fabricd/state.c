/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known from before, also by the daemon that ran before: of the store, which
 * fabrics it had, and which routes are held.  It lies in a folder of /run, and so lasts
 * as long as what VMRI has.
 *
 * A store that was lost and begun anew, or put back to an older state, is another
 * one: that it does not have something says nothing then.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd.h"

#define PATH_SIZE 512

static bool path_in(char path[PATH_SIZE], const char *folder, const char *name)
{
    return (size_t)snprintf(path, PATH_SIZE, "%s/%s", folder, name) < PATH_SIZE;
}

int state_lock(const char *folder)
{
    char path[PATH_SIZE];
    int fd;

    if (mkdir(folder, 0755) && errno != EEXIST) {
        report("cannot make the folder %s: %s", folder, strerror(errno));
        return -1;
    }
    if (!path_in(path, folder, "lock")) {
        report("the name of the folder is too long: %s", folder);
        return -1;
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        report("cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK)
            report("another vmri-fabricd runs: it has locked %s", path);
        else
            report("cannot lock %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

/* "fabric NUMBER NAME", "held NUMBER GID"; others are passed over. */
static void load_line(char *line, struct state *state)
{
    struct fabric f = { .num_rules = 0 };
    struct local_gid g;
    char *words[3];
    uint32_t number;

    if (split_words(line, words, 3) != 3 ||
        !is_decimal(words[1], VMRI_FABRIC_MAX, &number))
        return;
    if (!strcmp(words[0], "fabric") && is_fabric_name(words[2])) {
        f.id = number;
        strcpy(f.name, words[2]);
        state->map.fabrics = xrealloc(state->map.fabrics, (state->map.num_fabrics + 1) *
                                      sizeof(f));
        state->map.fabrics[state->map.num_fabrics++] = f;
    } else if (!strcmp(words[0], "held") && parse_address(words[2], g.gid) >= 0) {
        g.fabric = number;
        state->held.routes = xrealloc(state->held.routes, (state->held.num + 1) *
                                      sizeof(g));
        state->held.routes[state->held.num++] = g;
    }
}

void state_load(const char *folder, struct state *state)
{
    char path[PATH_SIZE], line[256];
    FILE *f = path_in(path, folder, "state") ? fopen(path, "r") : NULL;

    *state = (struct state){ .history = { .revision = 0 } };
    if (!f)
        return;
    if (fscanf(f, "history %32[0-9a-f] %" SCNd64 "\n", state->history.id,
               &state->history.revision) != 2)
        state->history = (struct history){ .revision = 0 };
    else
        while (fgets(line, sizeof(line), f))
            load_line(line, state);
    fclose(f);
}

/* When that fails the next start is a careful one, that is all. */
void state_save(const char *folder, const struct history *history,
                const struct map *map, const struct held *held)
{
    char path[PATH_SIZE], new[PATH_SIZE];
    unsigned int i;
    bool failed;
    FILE *f;

    if (!path_in(path, folder, "state") || !path_in(new, folder, "state.new"))
        return;
    f = fopen(new, "w");
    if (!f)
        return;
    fprintf(f, "history %s %" PRId64 "\n", history->id, history->revision);
    for (i = 0; i < map->num_fabrics; i++)
        fprintf(f, "fabric %u %s\n", map->fabrics[i].id, map->fabrics[i].name);
    for (i = 0; i < held->num; i++)
        fprintf(f, "held %u %s\n", held->routes[i].fabric, gid_text(held->routes[i].gid));
    failed = ferror(f);
    if (!fclose(f) && !failed)
        rename(new, path);
    else
        unlink(path);
}

bool history_continues(const struct history *before, const struct history *now)
{
    return *before->id && !strcmp(before->id, now->id) &&
           now->revision >= before->revision;
}

void history_draw(char id[HISTORY_SIZE])
{
    unsigned char bytes[HISTORY_SIZE / 2];
    unsigned int i;

    if (getentropy(bytes, sizeof(bytes))) {
        report("there are no random numbers: %s", strerror(errno));
        exit(RC_FAILURE);
    }
    for (i = 0; i < sizeof(bytes); i++)
        sprintf(id + 2 * i, "%02x", bytes[i]);
}
