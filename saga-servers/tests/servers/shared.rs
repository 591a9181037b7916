//! The servers that the test command gives: each test has a database and a virtual host of its own there.

use saga_servers::{Error, Management, psql, shared};

#[tokio::test]
async fn a_database_is_its_own_and_goes_with_its_value() -> Result<(), Error> {
    let one = shared::database("orders").await?;
    let other = shared::database("orders").await?;
    psql(one.url(), "CREATE TABLE only_here (id int)").await?;
    let missing = psql(other.url(), "SELECT * FROM only_here").await.expect_err("it is another database").to_string();
    assert!(missing.contains("does not exist"), "{missing}");

    psql(&one.pgbouncer_url()?, "INSERT INTO only_here VALUES (7)").await?;
    assert_eq!(psql(one.url(), "SELECT id FROM only_here").await?, "7");
    let name = psql(one.url(), "SELECT current_database()").await?;
    drop(one);
    let count = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(psql(&shared::postgres_url(), &count).await?, "0");
    Ok(())
}

#[tokio::test]
async fn a_virtual_host_is_its_own_and_goes_with_its_value() -> Result<(), Error> {
    let vhost = shared::vhost("orders").await?;
    assert!(vhost.url().ends_with(vhost.name()), "{} and {}", vhost.url(), vhost.name());
    let path = format!("vhosts/{}", vhost.name());
    assert_eq!(vhost.management().get(&path).await?["name"], vhost.name());
    drop(vhost);
    let gone = Management::at(&shared::amqp_management_url())?.get(&path).await.expect_err("it is gone").to_string();
    assert!(gone.contains("404"), "{gone}");
    Ok(())
}
