//! Building the guide with mdBook.

use anyhow::{Result, bail};

use super::links::follow;
use crate::phases::run;
use crate::tasks::prerequisites::answers_with;
use crate::workspace::{cargo, program, root};

/// The mdBook that builds the guide.
const MDBOOK: &str = "0.5.4";
/// Where mdBook is installed: below `target`, so that it is built once and no other project sees it.
const TOOLS: &str = "target/tools";
/// Where `docs/guide/book.toml` puts the pages. They lie as deep below the root as the chapters do, so that a link from a
/// chapter to another file of the repository leads there from its page as well.
const PAGES: &str = "target/guide/html";

/// Builds the guide, and fails if a link of its pages leads nowhere. It installs mdBook first where that has not happened.
/// The note says how many links there are.
pub(crate) fn book() -> Result<String> {
    let mdbook = format!("{TOOLS}/bin/mdbook");
    if !answers_with(&mdbook, &["--version"], &format!("mdbook v{MDBOOK}")) {
        println!("installing mdBook {MDBOOK} into {TOOLS}: less than a minute on two cores, once");
        // Without optimisation it is built in half the time, and still builds the guide within a second.
        let install = ["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features", "--debug"];
        run(cargo().args(install).args(["--root", TOOLS]))?;
    }
    run(program(&root().join(&mdbook).to_string_lossy()).args(["build", "docs/guide"]))?;
    let followed = follow(&root().join(PAGES))?;
    if !followed.dead.is_empty() {
        bail!("{} links of the guide lead nowhere:\n{}", followed.dead.len(), followed.dead.join("\n"));
    }
    println!("the guide is in {PAGES}/index.html; {} links lead somewhere", followed.count);
    Ok(format!("{} links", followed.count))
}
