//! Links releases with packed relative relocations: 1.4 MB less in the file. Needs glibc 2.36 where it runs; linkers
//! that do not know it ignore it. Where the compiler brings its own linker (x86-64), functions of the same code become one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        if is("CARGO_CFG_TARGET_ARCH", "x86_64") {
            println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
}
