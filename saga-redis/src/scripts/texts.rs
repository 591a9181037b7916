//! The texts of the scripts, with their hashes.

use std::sync::LazyLock;

use redis::Script;

/// A script with its text: Redis forgets scripts when it restarts, and is then sent the text.
#[derive(Debug)]
pub(crate) struct Text {
    text: &'static str,
    hash: LazyLock<String>,
}

impl Text {
    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }
}

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: Text = Text {
            text: include_str!($file),
            hash: LazyLock::new(|| Script::new(include_str!($file)).get_hash().to_owned()),
        };
    };
}

script!(ACQUIRE, "acquire.lua");
script!(BEGIN_EPOCH, "begin_epoch.lua");
script!(RENEW, "renew.lua");
script!(RELEASE, "release.lua");
script!(WITHDRAW, "withdraw.lua");
