//! Semantic locks as ordinary reads of the application see them.

use rusqlite::Connection;
use saga_core::Entity;
use saga_core::store::{Changes, Claim, LockAnswer, LockRequest, Records as _, SemanticLocks as _, Unlock};

use crate::support::{Error, asks_for, begun, store};

fn request(claim: &Claim) -> LockRequest {
    asks_for(claim, Entity::new("account", "ada"))
}

type Row = (String, Option<String>, Option<bool>);

#[tokio::test]
async fn the_view_says_what_is_locked_by_whom() {
    let (_folder, store) = store().await;
    let table = |conn: &mut Connection| -> Result<(), Error> {
        Ok(conn.execute_batch("CREATE TABLE accounts (id TEXT); INSERT INTO accounts VALUES ('ada'), ('bob')")?)
    };
    store.write(table).await.unwrap();
    let (first, second) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    let answers = store.ask_for_locks(vec![request(&first), request(&second)]).await.unwrap();
    assert!(matches!(answers[..], [LockAnswer::Granted(_), LockAnswer::Waits(_)]), "{answers:?}");
    let read = |conn: &Connection| -> Result<Vec<Row>, Error> {
        let sql = "SELECT a.id, l.saga_key, l.granted FROM accounts a \
             LEFT JOIN saga_semantic_locks l ON l.kind = 'account' AND l.id = a.id ORDER BY a.id, l.number";
        let mut statement = conn.prepare(sql)?;
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let row = |id: &str, key: &str, granted| (id.to_owned(), Some(key.to_owned()), Some(granted));
    let free = ("bob".to_owned(), None, None);
    let expected = [row("ada", "k-1", true), row("ada", "k-2", false), free.clone()];
    assert_eq!(store.read(read).await.unwrap(), expected);
    let unlocked = vec![Unlock::Owner(first.tenant.clone(), first.key.clone())];
    store.record(vec![Changes { unlocked, ..Changes::default() }]).await.unwrap();
    assert_eq!(store.read(read).await.unwrap(), [row("ada", "k-2", true), free]);
}
