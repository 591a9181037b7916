use std::{
    fmt,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Where lines come from, and how messages name it.
#[derive(Debug, Clone)]
pub enum Source {
    /// A sample that the program brings along, under the name of its file.
    Shipped(&'static str, &'static str),
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// The orders that the program brings along.
    pub const SAMPLE_ORDERS: Self = Self::Shipped("orders.jsonl", include_str!("../../data/orders.jsonl"));
    /// The products that the program brings along.
    pub const SAMPLE_PRODUCTS: Self = Self::Shipped("products.jsonl", include_str!("../../data/products.jsonl"));

    /// A file, or standard input for `-`.
    pub fn file_or_stdin(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path.to_owned()) }
    }

    /// Reads all of it.
    pub fn read(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Shipped(_, text) => Ok(text.as_bytes().to_vec()),
            Self::File(path) => std::fs::read(path).with_context(|| format!("cannot read {}", path.display())),
            Self::Stdin => {
                let mut bytes = Vec::new();
                std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
                Ok(bytes)
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped(name, _) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("stdin"),
        }
    }
}
