//! The files of the workspace, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::source::Source;

/// What is no part of the project's own text: what cargo builds and what git keeps.
const SKIPPED_FOLDERS: [&str; 2] = ["target", ".git"];

/// A file that is not Rust.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The workspace as the rules see it. Paths are from its root, with `/`.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) sources: Vec<Source>,
    pub(crate) markdown: Vec<TextFile>,
    pub(crate) manifests: Vec<TextFile>,
    /// Every file and folder, whatever it holds.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    /// Reads all files below `root`. Cases of compile errors (`ui/`) are no sources: they break rules on purpose. Nor is what a
    /// program generated.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_folder(root, "")?;
        Ok(tree)
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path.trim_end_matches('/'))
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.add_folder(&entry.path(), &format!("{path}/"))?;
            } else {
                self.add_file(&entry.path(), &path)?;
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    fn add_file(&mut self, file: &Path, path: &str) -> Result<()> {
        let read = || fs::read_to_string(file).with_context(|| format!("cannot read {path}"));
        match extension(path) {
            Some("rs") if !path.contains("/ui/") && !path.contains("/generated/") => {
                self.sources.push(Source::new(path, read()?).map_err(|error| anyhow!("not Rust: {error}"))?);
            }
            Some("md") => self.markdown.push(TextFile { path: path.to_owned(), text: read()? }),
            Some("toml") if path.ends_with("Cargo.toml") => {
                self.manifests.push(TextFile { path: path.to_owned(), text: read()? });
            }
            _ => {}
        }
        Ok(())
    }
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension().and_then(|extension| extension.to_str())
}

#[cfg(test)]
impl Tree {
    /// A tree of files for a rule's own tests.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let file = || TextFile { path: (*path).to_owned(), text: (*text).to_owned() };
            match extension(path) {
                Some("rs") => tree.sources.push(super::source::snippet(path, text)),
                Some("md") => tree.markdown.push(file()),
                _ => tree.manifests.push(file()),
            }
            for (at, _) in path.match_indices('/') {
                tree.paths.insert(path[..at].to_owned());
            }
            tree.paths.insert((*path).to_owned());
        }
        tree
    }
}
