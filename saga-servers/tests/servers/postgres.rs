//! PostgreSQL and PgBouncer: what was committed survives SIGKILL, and the address stays.

use std::net::TcpStream;

use saga_servers::{Error, PgBouncer, PostgresServer, psql};

#[tokio::test]
async fn what_was_committed_survives_a_kill() -> Result<(), Error> {
    let mut server = PostgresServer::start().await?;
    let url = server.create_database("a \"quoted\" name").await?;
    psql(&url, "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)").await?;
    assert_eq!(psql(&server.url(), "SHOW synchronous_commit").await?, "on");

    server.kill().await?;
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err(), "a killed server answers");
    server.restart().await?;
    assert_eq!(psql(&url, "SELECT id FROM orders").await?, "1");

    psql(&url, "INSERT INTO orders VALUES (2)").await?;
    server.stop().await?;
    server.restart().await?;
    assert_eq!(psql(&url, "SELECT count(*) FROM orders").await?, "2");

    // The log tells of each of its lives.
    assert_eq!(server.log()?.matches("database system is ready to accept connections").count(), 3);
    let connections: u32 = psql(&url, "SHOW max_connections").await?.parse().expect("a number");
    assert!(connections >= 200, "{connections}");
    Ok(())
}

#[tokio::test]
async fn pgbouncer_stands_in_front_and_a_wrong_password_is_refused() -> Result<(), Error> {
    let server = PostgresServer::start().await?;
    let url = server.create_database("orders").await?;
    let bouncer = PgBouncer::start(&server.url()).await?;
    let through = bouncer.url_of("orders")?;
    assert_eq!(
        psql(&through, "SELECT current_database(), inet_server_port()").await?,
        format!("orders|{}", server.port())
    );
    assert_eq!(psql(&bouncer.url_of("pgbouncer")?, "SHOW CONFIG").await?.matches("pool_mode|transaction").count(), 1);

    psql(&url, "CREATE ROLE clerk LOGIN PASSWORD 'right'").await?;
    let as_clerk = |password: &str| url.replace("postgres@", &format!("clerk:{password}@"));
    assert_eq!(psql(&as_clerk("right"), "SELECT current_user").await?, "clerk");
    let refused = psql(&as_clerk("wrong"), "SELECT 1").await.expect_err("the password is wrong").to_string();
    assert!(refused.contains("password authentication failed"), "{refused}");
    Ok(())
}
