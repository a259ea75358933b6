//! check.rs - a C program that compiles only if the C headers have the structs, functions and numbers of this crate.

/// Members whose types C spells in another way: the kernel's u64 is another type than uint64_t; a union; a function.
const OTHER: [(&str, &str); 5] = [
    ("perf_event_header", ""),
    ("perf_event_attr", ""),
    ("perfring_record", "is"),
    ("perfring_output", "trailer"),
    ("perfring_symbols_options", "progress"),
];

/// Members that the struct of C does not have under these names, or in older headers not at all.
const OWN: [(&str, &str); 8] = [
    ("perfring_layout_walk", "own"),
    ("perf_event_attr", "flags"),
    ("perf_event_attr", "reserved_2"),
    ("perf_event_attr", "aux_action"),
    ("perf_event_attr", "sig_data"),
    ("perf_event_attr", "config3"),
    ("perf_event_attr", "config4"),
    ("perf_event_attr", "reserve"),
];

/// A type of Rust as C spells it, `const` after what it qualifies.
fn in_c(text: &str) -> String {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('*') {
        let rest = rest.trim_start();
        return match (rest.strip_prefix("const "), rest.strip_prefix("mut ")) {
            (Some(of), _) => in_c(of) + " const *",
            (_, Some(of)) => in_c(of) + " *",
            _ => panic!("{text}"),
        };
    }
    match text {
        "" | "c_void" => "void".into(),
        "c_int" => "int".into(),
        "c_uint" => "unsigned".into(),
        "c_char" => "char".into(),
        "bool" | "perfring_word" => text.into(),
        "usize" => "size_t".into(),
        "i32" | "i64" => format!("int{}_t", &text[1..]),
        "u8" | "u16" | "u32" | "u64" => format!("uint{}_t", &text[1..]),
        name => format!("struct {name}"),
    }
}

/// A pointer to a member of that type, as C declares it.
fn pointer_in_c(text: &str, name: &str) -> String {
    match text.trim_matches(|c| c == '[' || c == ']').split_once(';') {
        Some((of, count)) => format!("{} (*{name})[{}]", in_c(of), count.trim()),
        None => format!("{} *{name}", in_c(text)),
    }
}

fn main() {
    println!("/* made by check.rs */");
    for header in [
        "callchain",
        "event",
        "feature",
        "file",
        "maps",
        "reader",
        "record",
        "sample",
        "session",
        "soft",
        "stacks",
        "symbol",
        "target",
        "writer",
    ] {
        println!("#include <perfring/{header}.h>");
    }
    let (mut structs, mut members, mut functions, mut constants) = (0, 0, 0, 0);
    perfring_sys::layouts(&mut |name, size, fields| {
        let is_own = |field: &str| OWN.contains(&(name, field));
        if name != "perf_event_attr" {
            println!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");");
        }
        structs += 1;
        for (field, offset, size, of) in fields.iter().filter(|field| !is_own(field.0)) {
            let field = field.trim_start_matches("r#");
            if !OTHER.iter().any(|other| other.0 == name && (other.1 == field || other.1.is_empty())) {
                println!("{} = &((struct {name} *)0)->{field};", pointer_in_c(of, &format!("check_{name}_{field}")));
            }
            println!("_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{name}.{field}\");");
            println!("_Static_assert(sizeof(((struct {name} *)0)->{field}) == {size}, \"{name}.{field}\");");
            members += 1;
        }
    });
    perfring_sys::signatures(&mut |name, arguments, result| {
        let arguments: Vec<String> = arguments.iter().map(|argument| in_c(argument)).collect();
        let list = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        println!("extern {} (*const check_{name})({list});", in_c(result));
        println!("{} (*const check_{name})({list}) = {name};", in_c(result));
        functions += 1;
    });
    perfring_sys::numbers(&mut |name, value| {
        println!("_Static_assert((long long){name} == {value}LL, \"{name}\");");
        constants += 1;
    });
    println!("int main(void) {{ return 0; }}");
    println!("/* {structs} structs, {members} members, {functions} functions, {constants} numbers */");
}
