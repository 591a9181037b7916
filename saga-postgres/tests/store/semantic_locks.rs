//! Semantic locks as ordinary reads of the application see them.

use saga_core::Entity;
use saga_core::store::{Changes, Claim, LockAnswer, LockRequest, Records as _, SemanticLocks as _, Unlock};
use sqlx::AssertSqlSafe;

use crate::support::{Place, asks_for, begun};

fn request(claim: &Claim) -> LockRequest {
    asks_for(claim, Entity::new("account", "ada"))
}

type Row = (String, Option<String>, Option<bool>);

#[tokio::test]
async fn the_view_says_what_is_locked_by_whom() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut conn = place.connection().await;
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    let answers = store.ask_for_locks(vec![request(&first), request(&second)]).await.unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_), LockAnswer::Waits(_)]), "{answers:?}");
    let sql = format!(
        "SELECT a.id, l.saga_key, l.granted FROM (VALUES ('ada'), ('bob')) AS a(id) \
         LEFT JOIN {}.semantic_locks l ON l.kind = 'account' AND l.id = a.id ORDER BY a.id, l.number",
        place.schema
    );
    let row = |id: &str, key: &str, granted| (id.to_owned(), Some(key.to_owned()), Some(granted));
    let free = ("bob".to_owned(), None, None);
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(sql.clone())).fetch_all(&mut conn).await.unwrap();
    assert_eq!(rows, [row("ada", "k-1", true), row("ada", "k-2", false), free.clone()]);
    let unlocked = vec![Unlock::Owner(first.tenant.clone(), first.key.clone())];
    store.record(vec![Changes { unlocked, ..Changes::default() }]).await.unwrap();
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut conn).await.unwrap();
    assert_eq!(rows, [row("ada", "k-2", true), free]);
    store.close().await;
    place.remove().await;
}
