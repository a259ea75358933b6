/* flame.h - the page of flame graphs, which CMake makes of profile/flame/: its bytes before and after the data.
 *
 * CMake makes the bytes of the page's parts, in a C file of the build folder.  Constants; never freed.
 */
#ifndef PERFRING_PROFILE_FLAME_H
#define PERFRING_PROFILE_FLAME_H

extern const unsigned char perfring__flame_begin[], perfring__flame_end[];
extern const unsigned long perfring__flame_begin_size, perfring__flame_end_size;

#endif
