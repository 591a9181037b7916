//! `cargo xtask book`: builds the guide with mdBook.

use anyhow::Result;

use super::prerequisites::answers_with;
use crate::phases::run;
use crate::workspace::{cargo, program, root};

/// The mdBook that builds the guide.
const MDBOOK: &str = "0.5.4";

/// Where mdBook is installed: below `target`, so that it is built once and no other project sees it.
const TOOLS: &str = "target/tools";

/// Builds the guide in `docs/guide` to `target/book`. It installs mdBook first where that has not happened.
pub(crate) fn book() -> Result<()> {
    let mdbook = format!("{TOOLS}/bin/mdbook");
    if !answers_with(&mdbook, &["--version"], &format!("mdbook v{MDBOOK}")) {
        println!("installing mdBook {MDBOOK} into {TOOLS}: less than a minute on two cores, once");
        // Without optimisation it is built in half the time, and still builds the guide within a second.
        let install = ["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features", "--debug"];
        run(cargo().args(install).args(["--root", TOOLS]))?;
    }
    run(program(&root().join(&mdbook).to_string_lossy()).args(["build", "docs/guide"]))
}
