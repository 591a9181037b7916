//! Tansu: what it confirmed to a client survives SIGKILL where it is kept elsewhere, and a frozen broker is silent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use saga_servers::{Error, TansuServer};

/// Asks which requests a broker knows, as each client does first, and gives the number of the answer.
fn ask_for_versions(brokers: &str) -> std::io::Result<u32> {
    const API_VERSIONS: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let mut stream = TcpStream::connect(brokers)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&API_VERSIONS)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    let [_, _, _, _, number @ ..] = answer;
    Ok(u32::from_be_bytes(number))
}

#[tokio::test]
async fn it_answers_until_it_is_killed_and_again_at_the_same_address() -> Result<(), Error> {
    let mut server = TansuServer::start().await?;
    let brokers = server.brokers();
    assert_eq!(ask_for_versions(&brokers).expect("it answers"), 7);
    server.kill().await?;
    assert!(ask_for_versions(&brokers).is_err(), "a killed broker answers");
    server.restart().await?;
    assert_eq!(server.brokers(), brokers);
    assert_eq!(ask_for_versions(&brokers).expect("it answers"), 7);
    server.freeze()?;
    assert!(ask_for_versions(&brokers).is_err(), "a frozen broker answers");
    server.resume()?;
    assert_eq!(ask_for_versions(&brokers).expect("it answers"), 7);
    server.stop().await?;
    assert!(ask_for_versions(&brokers).is_err(), "a stopped broker answers");
    assert_eq!(server.log()?.matches("ready in").count(), 2, "the log tells of each of its lives");
    Ok(())
}

/// What is in it is tested by `saga-kafka`, which has a client.
#[tokio::test]
async fn one_that_is_kept_elsewhere_comes_back() -> Result<(), Error> {
    let mut server = TansuServer::start_durable().await?;
    assert!(server.log()?.contains("storage: s3://tansu/"), "{}", server.log()?);
    server.kill().await?;
    server.restart().await?;
    assert_eq!(ask_for_versions(&server.brokers()).expect("it answers"), 7);
    Ok(())
}
