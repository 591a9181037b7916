//! What partners and operators wrote neither controls the terminal nor looks like another line.

use saga_core::Tenant;

use crate::shop::{FROM_OUTSIDE, Shop};

/// How it is printed on one line.
const ESCAPED: &str = r"\u{1b}]0;owned\u{7}\u{1b}[2J\nforged\u{9b}\u{202e}";

impl Shop {
    async fn says_escaped(&self, args: &[&str]) {
        let said = self.says(args, 0, ESCAPED).await;
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{args:?}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("forged")), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn reasons_and_errors_of_sagas_are_escaped() {
    let shop = Shop::default();
    shop.run_orders(&[("dear", 666)]).await;
    shop.run_failing_order("unlucky", 14).await;
    shop.says_escaped(&["show", "dear"]).await;
    shop.says_escaped(&["show", "unlucky"]).await;
    shop.says_escaped(&["list", "--failing"]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    shop.says_escaped(&["bulk", "plan", "skip", "--status", "stuck", "--out", file.to_str().expect("text")]).await;
    shop.says(&["pause", "unlucky", "--reason", FROM_OUTSIDE, "--by", "ann"], 0, "is paused").await;
    shop.says_escaped(&["show", "unlucky"]).await;
    shop.says_escaped(&["audit"]).await;
    let line = shop.says(&["audit", "--json"], 0, "\\u001b]0;owned\\u0007").await;
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[tokio::test]
async fn errors_of_messages_are_escaped() {
    let shop = Shop::default();
    shop.bury(17, Tenant::default(), FROM_OUTSIDE).await;
    shop.park(1, Tenant::default(), FROM_OUTSIDE).await;
    shop.says_escaped(&["dead-letters", "list"]).await;
    shop.says_escaped(&["dead-letters", "show", "17"]).await;
    shop.says_escaped(&["outbox", "list"]).await;
}
