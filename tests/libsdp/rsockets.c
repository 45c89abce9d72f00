// SPDX-License-Identifier: GPL-2.0-only
/*
 * A librdmacm whose rsockets are sockets of TCP on other ports, so that libsdp runs where
 * there is no RDMA. It calls the kernel past the C library, in front of which libsdp
 * stands, and ends the program when that does what rsockets do not bear.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define OTHER_PORT 0x2000

static pid_t process;

static void must(int holds, const char *what)
{
	static const char end[] = "\n";

	if (holds)
		return;
	syscall(SYS_write, 2, what, strlen(what));
	syscall(SYS_write, 2, end, 1);
	_exit(99);
}

/* Nothing of it survives a fork(). */
static void in_one_process(void)
{
	if (!process)
		process = getpid();
	must(process == getpid(), "rsockets are used in a child");
}

/* The port has the same place in both families. */
static struct sockaddr *moved(struct sockaddr_storage *to, const struct sockaddr *from,
			      socklen_t size)
{
	memcpy(to, from, size);
	((struct sockaddr_in *)to)->sin_port ^= htons(OTHER_PORT);
	return (struct sockaddr *)to;
}

/* As peers have the port. */
static int named(int result, struct sockaddr *address)
{
	if (!result && address)
		((struct sockaddr_in *)address)->sin_port ^= htons(OTHER_PORT);
	return result;
}

int rsocket(int family, int type, int protocol)
{
	in_one_process();
	must(type == SOCK_STREAM, "an rsocket of a type that there is not");
	return syscall(SYS_socket, family, type | SOCK_CLOEXEC, protocol);
}

int rbind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sockaddr_storage to;
	int on = 1;

	syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return syscall(SYS_bind, fd, moved(&to, address, size), size);
}

int rlisten(int fd, int backlog)
{
	return syscall(SYS_listen, fd, backlog);
}

int raccept(int fd, struct sockaddr *address, socklen_t *size)
{
	int new = syscall(SYS_accept4, fd, address, size, SOCK_CLOEXEC);

	in_one_process();
	named(new < 0, address);
	return new;
}

int rconnect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sockaddr_storage to;

	return syscall(SYS_connect, fd, moved(&to, address, size), size);
}

int rshutdown(int fd, int how)
{
	return syscall(SYS_shutdown, fd, how);
}

int rclose(int fd)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	in_one_process();
	syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
	/* Wakes who accepts. */
	if (listens)
		syscall(SYS_shutdown, fd, SHUT_RDWR);
	return syscall(SYS_close, fd);
}

ssize_t rrecv(int fd, void *to, size_t size, int flags)
{
	ssize_t got;

	in_one_process();
	must(!(flags & ~MSG_PEEK), "flags that rrecv() takes for others");
	got = syscall(SYS_recvfrom, fd, to, size, flags, NULL, NULL);
	return got < 0 && errno == ECONNRESET ? 0 : got;
}

static ssize_t sent(ssize_t bytes)
{
	if (bytes < 0 && errno == EPIPE)
		errno = ECONNRESET;
	return bytes;
}

ssize_t rsend(int fd, const void *from, size_t size, int flags)
{
	in_one_process();
	must(!flags, "flags that rsend() takes for others");
	return sent(syscall(SYS_sendto, fd, from, size, MSG_NOSIGNAL, NULL, 0));
}

ssize_t rwritev(int fd, const struct iovec *vector, int count)
{
	const struct msghdr message = { .msg_iov = (void *)vector, .msg_iovlen = count };

	in_one_process();
	return sent(syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL));
}

/* By way of poll(), as librdmacm does. */
int rpoll(struct pollfd *fds, nfds_t count, int timeout)
{
	nfds_t i;

	in_one_process();
	must(timeout == 0 || timeout == -1, "rpoll() for a time, which leaks");
	for (i = 0; i < count; i++)
		must(fds[i].fd >= 0, "rpoll() of no descriptor");
	return poll(fds, count, timeout);
}

int rgetpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	return named(syscall(SYS_getpeername, fd, address, size), address);
}

int rgetsockname(int fd, struct sockaddr *address, socklen_t *size)
{
	return named(syscall(SYS_getsockname, fd, address, size), address);
}

int rgetsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	return syscall(SYS_getsockopt, fd, level, option, value, size);
}

int rsetsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	return syscall(SYS_setsockopt, fd, level, option, value, size);
}

int rfcntl(int fd, int command, int arg)
{
	return syscall(SYS_fcntl, fd, command, arg);
}
