/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layer 2 of fabrics that have a VNI: a program makes it, which is told which
 * hosts have the fabric, whenever that has changed.
 *
 *   PROGRAM sync FABRIC vni=N local=ADDRESS [PEER...]
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabricd.h"

#define TIMEOUT_MS  60000U      /* of the program */
#define AGAIN_MS    30000U      /* after it has failed */

struct job {
    char name[VMRI_FABRIC_NAME];
    char *wanted;               /* its arguments, with blanks between them */
    char *told;                 /* those that it has ended well with, or NULL */
    uint64_t not_before;
};

static struct job *jobs;
static unsigned int num_jobs;

static struct {
    pid_t pid;                  /* 0: none */
    char *told;
    char name[VMRI_FABRIC_NAME];
    uint64_t until;
} running;

static struct job *find_job(const char *name)
{
    unsigned int i;

    for (i = 0; i < num_jobs; i++)
        if (!strcmp(jobs[i].name, name))
            return &jobs[i];
    return NULL;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, so that what is the same looks the same. */
static char *arguments(const struct map *map, const struct self *self,
                       const struct fabric *f)
{
    char **peers = xcalloc(map->num_members, sizeof(*peers));
    size_t room = ADDRESS_SIZE * (map->num_members + 1) + VMRI_FABRIC_NAME + 64;
    char *text = xcalloc(1, room);
    unsigned int i, num = 0;
    int n;

    for (i = 0; i < map->num_members; i++)
        if (&map->fabrics[map->members[i].fabric] == f &&
            strcmp(map->members[i].host, self->host))
            peers[num++] = xstrdup(address_text(map->members[i].host_gid));
    qsort(peers, num, sizeof(*peers), compare_texts);
    n = snprintf(text, room, "sync %s vni=%u local=%s", f->name, f->vni,
                 address_text(self->gid));
    for (i = 0; i < num; i++) {
        n += snprintf(text + n, room - n, " %s", peers[i]);
        free(peers[i]);
    }
    free(peers);
    return text;
}

void layer2_update(const struct config *config, const struct self *self,
                   const struct map *map)
{
    unsigned int i;

    for (i = 0; config->layer2 && i < map->num_fabrics; i++) {
        const struct fabric *f = &map->fabrics[i];
        struct job *job = find_job(f->name);

        if (!f->vni)
            continue;
        if (!job) {
            jobs = xrealloc(jobs, (num_jobs + 1) * sizeof(*jobs));
            job = &jobs[num_jobs++];
            *job = (struct job){ .wanted = NULL };
            strcpy(job->name, f->name);
        }
        free(job->wanted);
        job->wanted = arguments(map, self, f);
    }
}

static void start(const struct config *config, struct job *job, uint64_t now)
{
    char *text = xstrdup(job->wanted), **argv;
    int max = strlen(text) / 2 + 2;

    argv = xcalloc(max + 2, sizeof(*argv));
    argv[0] = config->layer2;
    split_words(text, argv + 1, max);
    running.pid = fork();
    if (!running.pid) {
        execv(argv[0], argv);
        report("cannot run %s: %s", argv[0], strerror(errno));
        _exit(127);
    }
    if (running.pid < 0) {
        report("cannot start %s: %s", argv[0], strerror(errno));
        running.pid = 0;
        job->not_before = now + AGAIN_MS;
    } else {
        running.told = xstrdup(job->wanted);
        strcpy(running.name, job->name);
        running.until = now + TIMEOUT_MS;
    }
    free(argv);
    free(text);
}

/* It has ended. */
static void take_end(const struct config *config, int status, uint64_t now)
{
    struct job *job = find_job(running.name);

    if (WIFEXITED(status) && !WEXITSTATUS(status)) {
        free(job->told);
        job->told = running.told;
    } else {
        report("%s %s has failed: it is run again in %u s", config->layer2, running.told,
               AGAIN_MS / 1000);
        job->not_before = now + AGAIN_MS;
        free(running.told);
    }
    running.told = NULL;
    running.pid = 0;
}

void layer2_work(const struct config *config, uint64_t now)
{
    unsigned int i;
    int status;

    if (running.pid && now >= running.until)
        kill(running.pid, SIGKILL);
    if (running.pid && waitpid(running.pid, &status, WNOHANG) == running.pid)
        take_end(config, status, now);
    for (i = 0; i < num_jobs && !running.pid; i++)
        if (now >= jobs[i].not_before &&
            (!jobs[i].told || strcmp(jobs[i].told, jobs[i].wanted)))
            start(config, &jobs[i], now);
}

/* What runs goes on. */
void layer2_end(void)
{
    unsigned int i;

    for (i = 0; i < num_jobs; i++) {
        free(jobs[i].wanted);
        free(jobs[i].told);
    }
    free(jobs);
    free(running.told);
    jobs = NULL;
    num_jobs = 0;
    memset(&running, 0, sizeof(running));
}
