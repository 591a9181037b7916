//! Every mistake under `tests/ui/<topic>/fail` keeps its program from compiling, with the message beside it.
//!
//! The messages are compared on the toolchain that `tests/toolchain` names, because every other one words its own part
//! differently; there each case must still fail to compile. `SAGA_UI_ONLY=part_of_a_name` runs the cases whose path has
//! this part; `TRYBUILD=overwrite` writes the messages anew, to be reviewed as code.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Where the copies of the cases are, in a run that only asks whether they fail.
const COPIES: &str = "SAGA_UI_COPIES";

#[test]
fn every_mistake_is_reported_in_its_place() {
    if let Some(copies) = env::var_os(COPIES) {
        return run(&cases(Path::new(&copies)));
    }
    let cases = cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui"));
    let pinned = include_str!("toolchain").trim();
    let running = running_toolchain();
    if running == pinned {
        run(&cases);
    } else {
        println!("the messages were not compared: they are those of Rust {pinned}, and this is {running}");
        run_copies(&cases);
    }
}

/// Compiles the cases, all in one build.
fn run(cases: &[PathBuf]) {
    let trybuild = trybuild::TestCases::new();
    for case in cases {
        trybuild.compile_fail(case);
    }
}

/// Compiles copies of the cases in a second process, which accepts whatever message they give.
fn run_copies(cases: &[PathBuf]) {
    let copies = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui-copies");
    if copies.exists() {
        fs::remove_dir_all(&copies).expect("the copies of an earlier run can be removed");
    }
    for case in cases {
        let topic = case.ancestors().nth(2).and_then(Path::file_name).expect("a case lies in ui/<topic>/fail");
        let folder = copies.join(topic).join("fail");
        fs::create_dir_all(&folder).expect("the target folder can be written");
        fs::copy(case, folder.join(case.file_name().expect("a case has a name"))).expect("a case can be copied");
    }
    let status = Command::new(env::current_exe().expect("the path of this test is known"))
        .args(["--exact", "every_mistake_is_reported_in_its_place", "--nocapture"])
        .env(COPIES, &copies)
        .env("TRYBUILD", "overwrite")
        .status()
        .expect("this test can be run again");
    assert!(status.success(), "a case compiles that must not");
}

/// The failing cases, in order; never none.
fn cases(root: &Path) -> Vec<PathBuf> {
    let only = env::var("SAGA_UI_ONLY").unwrap_or_default();
    let topics = files_in(root).into_iter().map(|topic| topic.join("fail")).filter(|folder| folder.exists());
    let cases: Vec<PathBuf> = topics
        .flat_map(|folder| files_in(&folder))
        .filter(|case| case.extension().is_some_and(|extension| extension == "rs"))
        .filter(|case| case.to_string_lossy().contains(&only))
        .collect();
    assert!(!cases.is_empty(), "no case under {} has `{only}` in its path", root.display());
    cases
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    files.sort();
    files
}

/// Major and minor version of the compiler that compiles the cases.
fn running_toolchain() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("the compiler can be run");
    let text = String::from_utf8(output.stdout).expect("the compiler's version is text");
    let version = text.split_whitespace().nth(1).expect("the version is the second word");
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}
