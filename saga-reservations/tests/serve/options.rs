//! Wrong options have an error that says what to do.

use crate::program::program;

async fn said(arguments: &[&str]) -> String {
    let output = program(arguments).output().await.unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn wrong_options_are_refused_with_what_to_do() {
    let listen = ["--grpc", "127.0.0.1:0"];
    let serve = |more: &[&'static str]| [&["serve"], more].concat();
    for (arguments, expected) in [
        (serve(&listen), "--store <URL>"),
        (serve(&["--store", "memory:"]), "--grpc <ADDR>"),
        (serve(&["--store", "redis://h", "--grpc", "127.0.0.1:0"]), "write `sqlite:FILE`"),
        (serve(&["--store", "memory:", "--grpc", "here"]), "invalid value 'here' for '--grpc <ADDR>'"),
        (serve(&["--store", "memory:", "--grpc", "127.0.0.1:0", "--keep-days", "0"]), "'--keep-days <DAYS>'"),
        (serve(&["--store", "sqlite:/no/such/folder/r.db", "--http", "127.0.0.1:0"]), "the store cannot be opened"),
        (serve(&["--store", "postgres://127.0.0.1:1/shop", "--http", "127.0.0.1:0"]), "the store cannot be opened"),
        (serve(&["--store", "memory:", "--redis", "redis://h", "--http", "127.0.0.1:0"]), "a store that lasts"),
        (serve(&["--store", "memory:", "--redis", "http://h", "--http", "127.0.0.1:0"]), "no address of Redis"),
    ] {
        let said = said(&arguments).await;
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn the_password_of_redis_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("reservations.db").display());
    let wrong = ["serve", "--store", &store, "--redis", "redis://:secret@127.0.0.1:1", "--http", "127.0.0.1:0"];
    let said = said(&wrong).await;
    assert!(said.contains("Redis at 127.0.0.1:1 does not answer") && !said.contains("secret"), "{said}");
}

/// The parser of options would repeat the value.
#[tokio::test]
async fn a_wrong_address_is_refused_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("reservations.db").display());
    for (arguments, expected) in [
        (vec!["--store", "mysql://ada:secret@h/d"], "invalid value for '--store <URL>': `h/d` is no store"),
        (vec!["--store", &file, "--redis", "reddis://:secret@h"], "invalid value for '--redis <URL>'"),
    ] {
        let said = said(&[vec!["serve", "--http", "127.0.0.1:0"], arguments].concat()).await;
        assert!(said.contains(expected) && !said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let said = said(&["serve", "--store", "memory:", "--http", &address]).await;
    assert!(said.contains(&format!("HTTP cannot listen on {address}; choose another address")), "{said}");
}
