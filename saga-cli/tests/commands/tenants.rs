//! `--tenant`: the commands reach the sagas of each tenant, and of no other one.

use saga_core::Tenant;

use crate::shop::Shop;

/// Two tenants with stuck orders of the same keys, which are at the same revisions.
async fn shop_of_two() -> Shop {
    let shop = Shop::default();
    for tenant in [Tenant::default(), Tenant::new("acme").expect("a name")] {
        shop.run_orders_of(&tenant, &[("dear", 101)]).await;
    }
    shop.run_orders_of(&Tenant::new("acme").expect("a name"), &[("cheap", 5)]).await;
    shop
}

#[tokio::test]
async fn a_tenant_has_its_own_sagas() {
    let shop = shop_of_two().await;
    assert_eq!(shop.says(&["list"], 0, "dear").await.lines().count(), 1);
    assert_eq!(shop.says(&["list", "--tenant", "acme"], 0, "cheap").await.lines().count(), 2);
    shop.says(&["show", "cheap"], 2, "there is no saga cheap in the shop").await;
    shop.says(&["show", "cheap", "--tenant", "acme"], 0, "cheap (create-order version 1)").await;
    shop.says(&["show", "none", "--tenant", "acme"], 2, "there is no saga none in the shop of the tenant acme").await;
    shop.act(&["pause", "dear", "--tenant", "acme"], 0, "before `shop resume --tenant acme`\n").await;
    shop.act(&["resume", "dear", "--tenant", "acme"], 0, "dear goes on").await;
    shop.act(&["skip", "dear", "--tenant", "acme"], 0, "dear goes on").await;
    assert_eq!(shop.says(&["audit"], 0, "").await, "");
    assert_eq!(shop.says(&["audit", "--tenant", "acme"], 0, "skip by ann").await.lines().count(), 3);
    shop.says(&["list", "--status", "stuck"], 0, "dear").await;
    shop.act(&["retention", "exempt", "cheap", "--tenant", "acme"], 0, "cheap is kept for ever").await;
}

#[tokio::test]
async fn a_plan_acts_on_the_tenant_that_it_was_made_for() {
    let shop = shop_of_two().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (acme, default) = (file("acme.json"), file("default.json"));
    let plan = ["bulk", "plan", "force-completed", "--status", "stuck", "--out"];
    shop.says(&[&plan[..], &[&acme, "--tenant", "acme"]].concat(), 0, "1 sagas; nothing is changed yet").await;
    shop.says(&[&plan[..], &[&default]].concat(), 0, "1 sagas; nothing is changed yet").await;
    shop.act(&["bulk", "run", &acme, "--tenant", "other"], 2, "the plan lists sagas of the tenant acme").await;
    shop.act(&["bulk", "run", &default, "--tenant", "acme"], 2, "the plan lists sagas of the default tenant").await;
    shop.act(&["bulk", "run", &acme], 0, "1 done, 0 done before, 0 refused, 0 failed\n").await;
    shop.says(&["show", "dear", "--tenant", "acme"], 0, "dear (create-order version 1): completed").await;
    shop.says(&["show", "dear"], 0, "dear (create-order version 1): stuck").await;
}
