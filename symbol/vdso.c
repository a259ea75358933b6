/* vdso.c - the vdso as a file.
 *
 * perfring_vdso_open of symbol.h: symbols.c reads its symbols, a recorder its build id.  The bytes are this process's memory,
 * copied into a memfd.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <perfring/symbol.h>

int perfring_vdso_open(void)
{
	const unsigned char *image = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)image;
	size_t size, done = 0;
	int fd;

	if (!image)
		return -ENOENT;
	size = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (done < size) {
		ssize_t one = write(fd, image + done, size - done);

		if (one <= 0) {
			int error = one ? -errno : -EIO;

			close(fd);
			return error;
		}
		done += (size_t)one;
	}
	return fd;
}
