/* sanitizers.h - which sanitizers this was compiled for: gcc and clang say it in different ways. */
#ifndef SANITIZERS_H
#define SANITIZERS_H

#ifdef __has_feature
#define SANITIZERS_FEATURE(name) __has_feature(name)
#else
#define SANITIZERS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_FEATURE(address_sanitizer)
#define IS_ADDRESS_SANITIZED 1
#else
#define IS_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__) || SANITIZERS_FEATURE(thread_sanitizer)
#define IS_THREAD_SANITIZED 1
#else
#define IS_THREAD_SANITIZED 0
#endif

#define IS_SANITIZED (IS_ADDRESS_SANITIZED || IS_THREAD_SANITIZED || SANITIZERS_FEATURE(undefined_behavior_sanitizer))

#endif
