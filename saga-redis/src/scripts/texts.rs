//! The texts of the scripts, with their hashes.

use std::sync::OnceLock;

use redis::Script;

/// A script with its text: Redis forgets scripts when it restarts, and is then sent the text.
#[derive(Debug)]
pub struct Text {
    text: &'static str,
    hash: OnceLock<String>,
}

impl Text {
    /// A script of this text.
    pub const fn new(text: &'static str) -> Self {
        Self { text, hash: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn hash(&self) -> &str {
        self.hash.get_or_init(|| Script::new(self.text).get_hash().to_owned())
    }
}

pub(crate) static ACQUIRE: Text = Text::new(include_str!("acquire.lua"));
/// Keys: the incarnation, the counter, and what else ends with the epoch. Argument: the epoch.
pub static BEGIN_EPOCH: Text = Text::new(include_str!("begin_epoch.lua"));
pub(crate) static RENEW: Text = Text::new(include_str!("renew.lua"));
pub(crate) static RELEASE: Text = Text::new(include_str!("release.lua"));
pub(crate) static WITHDRAW: Text = Text::new(include_str!("withdraw.lua"));
