use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Stdio},
};

use super::Shop;

/// The gateway and the carrier as a process of their own; it ends with this value.
#[derive(Debug)]
pub(crate) struct OutsideProcess {
    child: Child,
    _out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl OutsideProcess {
    pub(crate) fn start(shop: &Shop, more: &[&str]) -> Self {
        Self::start_at(shop, "127.0.0.1:0", more)
    }

    pub(crate) fn start_at(shop: &Shop, address: &str, more: &[&str]) -> Self {
        let args = [&["outside", "--listen", address], more].concat();
        let mut child = shop.command(&args).stderr(Stdio::inherit()).spawn().expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where it listens");
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}")).to_owned();
        Self { child, _out: out, url }
    }

    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }
}

impl Drop for OutsideProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
