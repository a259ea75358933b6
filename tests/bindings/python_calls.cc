// python_calls.cc - the functions that the Python package calls, as C's headers declare them: a line for each, with the kinds of its
// result and arguments.
//
// python_calls.h has OF(NAME) for each and ATTR_SPACE, the bytes that the package has for an attr: python_dump.py writes it.
#include <cstdio>
#include <type_traits>
#include <linux/perf_event.h>
#include <perfring/event.h>
#include <perfring/file.h>
#include <perfring/format.h>
#include <perfring/maps.h>
#include <perfring/record.h>
#include <perfring/ring.h>
#include <perfring/rows.h>
#include <perfring/session.h>
#include <perfring/soft.h>
#include <perfring/symbol.h>
#include <perfring/target.h>
#include <perfring/text.h>

template <class T> static void print_kind()
{
	if constexpr (std::is_void_v<T>)
		std::printf(" void");
	else if constexpr (std::is_pointer_v<T>)
		std::printf(" pointer");
	else if constexpr (std::is_class_v<T>)
		std::printf(" struct%zu", sizeof(T));
	else if constexpr (std::is_same_v<T, bool>)
		std::printf(" bool");
	else if constexpr (std::is_enum_v<T>)
		print_kind<std::underlying_type_t<T>>();
	else
		std::printf(" %c%zu", std::is_signed_v<T> ? 'i' : 'u', 8 * sizeof(T));
}

template <class R, class... A> static void print_call(const char *name, R (*)(A...))
{
	std::printf("%s", name);
	print_kind<R>();
	(print_kind<A>(), ...);
	std::printf("\n");
}

int main()
{
#define OF(name) print_call(#name, name);
#include "python_calls.h"
	static_assert(sizeof(perf_event_attr) <= ATTR_SPACE, "an attr of these headers");
	return 0;
}
