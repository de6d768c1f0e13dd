// Compiles the C sources beside this crate, with $CC or cc.
use std::{env, path::{Path, PathBuf}, process::Command};

fn run(program: &str, arguments: &[String]) {
    let status = Command::new(program).args(arguments).status();
    let is_done = status.as_ref().map(|status| status.success()).unwrap_or(false);
    assert!(is_done, "{program} {arguments:?}: {status:?}");
}

fn main() {
    let folder: PathBuf = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("..");
    let out = env::var("OUT_DIR").unwrap();
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut objects = Vec::new();
    for source in [@sources@] {
        let object = format!("{out}/{source}.o");
        let path = folder.join(source).display().to_string();
        let flags = ["-std=c11", "-O2", "-fPIC", "-c", path.as_str(), "-o", object.as_str()];
        run(&compiler, &flags.map(String::from));
        objects.push(object);
    }
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut archive = vec!["crs".to_string(), format!("{out}/lib@name@_kernels.a")];
    archive.extend(objects);
    run("ar", &archive);
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=@name@_kernels");
    println!("cargo:rustc-link-lib=dl");
    println!("cargo:rustc-link-lib=pthread");
}
