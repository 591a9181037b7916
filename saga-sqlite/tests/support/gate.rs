//! Making calls wait together.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use saga_sqlite::SqliteStore;

use super::Error;

/// A gate that holds the writer until it is opened, so that what is asked for meanwhile lands in one group.
pub struct Gate {
    opens: std::sync::mpsc::Sender<()>,
    held: tokio::task::JoinHandle<Result<(), Error>>,
}

impl Gate {
    pub async fn shut(store: &SqliteStore) -> Self {
        let (opens, opened) = std::sync::mpsc::channel();
        let (entered, enters) = tokio::sync::oneshot::channel();
        let mut entered = Some(entered);
        let opened = Arc::new(std::sync::Mutex::new(opened));
        let store = store.clone();
        let held = tokio::spawn(async move {
            store
                .write(move |_| {
                    if let Some(entered) = entered.take() {
                        _ = entered.send(());
                    }
                    // Whoever drops the other end opens the gate too.
                    _ = opened.lock().unwrap().recv();
                    Ok(())
                })
                .await
        });
        enters.await.unwrap();
        Self { opens, held }
    }

    pub async fn open(self) {
        drop(self.opens);
        self.held.await.unwrap().unwrap();
    }
}

/// Asks for many things, then lets `one` happen, and waits for everything that was asked for.
pub async fn all<T>(many: impl Iterator<Item = impl Future<Output = T>>, one: impl Future<Output = ()>) -> Vec<T> {
    let mut many: Vec<Pin<Box<_>>> = many.map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = many.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, answer) in many.iter_mut().zip(&mut answers) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *answer = Some(ready);
            }
        }
        Poll::Ready(())
    })
    .await;
    one.await;
    for (future, answer) in many.into_iter().zip(&mut answers) {
        if answer.is_none() {
            *answer = Some(future.await);
        }
    }
    answers.into_iter().flatten().collect()
}
