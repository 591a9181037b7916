//! What compiles the workspace for its tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// What compiles the workspace for its tests.
#[derive(Debug, Clone, Default)]
pub(super) enum Compiler {
    /// The compiler itself.
    #[default]
    Rustc,
    /// Clippy's compiler, at this path. It looks at all that it compiles, and a warning is an error. `cargo clippy` would read the whole
    /// workspace and its dependencies once more.
    Clippy(PathBuf),
}

impl Compiler {
    /// That of the toolchain in use.
    pub(super) fn clippy() -> Result<Self> {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let asked = Command::new(&rustc).args(["--print", "sysroot"]).output();
        let sysroot = asked.with_context(|| format!("cannot run `{rustc} --print sysroot`"))?.stdout;
        let sysroot = String::from_utf8(sysroot).context("the path of the toolchain is not UTF-8")?;
        let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
        if !driver.exists() {
            bail!("{} does not exist; install clippy where rustc is", driver.display());
        }
        Ok(Self::Clippy(driver))
    }

    /// Has this call of cargo use it.
    pub(super) fn compiles(&self, command: &mut Command) {
        if let Self::Clippy(driver) = self {
            // As `cargo clippy -- -D warnings` sets them.
            command.env("RUSTC_WORKSPACE_WRAPPER", driver);
            command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What it is there for: a lint of clippy fails a build.
    #[test]
    fn a_lint_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.rs");
        fs::write(&file, "pub fn text(name: &str) -> String {\n    return name.to_owned();\n}\n").unwrap();
        fs::write(
            folder.path().join("Cargo.toml"),
            "[package]\nname = \"linted\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n",
        )
        .unwrap();
        let build = |compiler: &Compiler| {
            let mut command = crate::workspace::cargo();
            command.args(["build", "--offline", "--quiet", "--target-dir", "target"]).current_dir(folder.path());
            compiler.compiles(&mut command);
            command.output().unwrap()
        };
        assert!(build(&Compiler::Rustc).status.success());
        let linted = build(&Compiler::clippy().unwrap());
        let text = String::from_utf8_lossy(&linted.stderr);
        assert!(!linted.status.success() && text.contains("needless_return"), "{text}");
    }
}
