//! Questions of many callers that are answered together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Questions that wait for the answers to those before them, and are then answered together. So the work on each begins after
/// it was asked, and a question that comes alone waits for nothing. The caller that comes first works for all.
#[derive(Debug)]
pub(crate) struct Batches<Q, A> {
    /// The most questions that are answered together.
    questions_max: usize,
    waiting: Arc<Mutex<Vec<Waiter<Q, A>>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Waiter<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

/// A clone shares with it.
impl<Q, A> Clone for Batches<Q, A> {
    fn clone(&self) -> Self {
        let (waiting, turn) = (Arc::clone(&self.waiting), Arc::clone(&self.turn));
        Self { questions_max: self.questions_max, waiting, turn }
    }
}

impl<Q: Clone, A> Batches<Q, A> {
    pub(crate) fn of_up_to(questions_max: usize) -> Self {
        Self { questions_max, waiting: Arc::default(), turn: Arc::default() }
    }

    /// Asks, and waits for the answer. `work` has an answer to each question, in their order.
    ///
    /// # Cancel safety
    /// If a caller is dropped that works for others, they ask again: the work on a question may be done twice.
    pub(crate) async fn ask<F: Future<Output = Vec<A>>>(&self, question: Q, work: impl Fn(Vec<Q>) -> F) -> A {
        loop {
            let (answer, mut answered) = oneshot::channel();
            self.waiting().push(Waiter { question: question.clone(), answer });
            let _turn = self.turn.lock().await;
            loop {
                match answered.try_recv() {
                    Ok(answer) => return answer,
                    // The caller that worked for this one was dropped.
                    Err(TryRecvError::Closed) => break,
                    Err(TryRecvError::Empty) => self.answer_next(&work).await,
                }
            }
        }
    }

    async fn answer_next<F: Future<Output = Vec<A>>>(&self, work: impl Fn(Vec<Q>) -> F) {
        let (questions, callers): (Vec<_>, Vec<_>) = self.next().into_iter().unzip();
        for (caller, answer) in callers.into_iter().zip(work(questions).await) {
            // The caller may be gone.
            _ = caller.send(answer);
        }
    }

    /// The next questions, in the order in which they came. Those of callers that are gone are left out.
    fn next(&self) -> Vec<(Q, oneshot::Sender<A>)> {
        let mut waiting = self.waiting();
        waiting.retain(|waiter| !waiter.answer.is_closed());
        let count = waiting.len().min(self.questions_max);
        waiting.drain(..count).map(|waiter| (waiter.question, waiter.answer)).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiter<Q, A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// Lets a caller come so far as it can without another one.
    async fn poll<F: Future + Unpin>(caller: &mut F) {
        tokio::select! {
            biased;
            _ = caller => panic!("it was answered"),
            () = ready(()) => {}
        }
    }

    fn double(questions: Vec<u32>) -> impl Future<Output = Vec<u32>> {
        ready(questions.into_iter().map(|question| 2 * question).collect())
    }

    #[tokio::test]
    async fn what_is_asked_during_the_work_is_answered_together() {
        let (batches, works) = (Batches::of_up_to(2), Mutex::new(Vec::new()));
        let ask = |question| {
            batches.ask(question, |questions: Vec<u32>| {
                works.lock().unwrap().push(questions.clone());
                async {
                    tokio::task::yield_now().await;
                    double(questions).await
                }
            })
        };
        assert_eq!(tokio::join!(ask(1), ask(2), ask(3), ask(4)), (2, 4, 6, 8));
        assert_eq!(*works.lock().unwrap(), [vec![1], vec![2, 3], vec![4]]);
    }

    #[tokio::test]
    async fn callers_ask_again_when_the_one_is_dropped_that_works_for_them() {
        let batches = Batches::of_up_to(8);
        let (end, ended) = oneshot::channel::<()>();
        let ended = Mutex::new(Some(ended));
        let mut first = Box::pin(batches.ask(1, |questions| {
            let ended = ended.lock().unwrap().take().unwrap();
            async {
                ended.await.unwrap();
                double(questions).await
            }
        }));
        poll(&mut first).await;
        let mut gone = Box::pin(batches.ask(2, double));
        let mut second = Box::pin(batches.ask(3, |questions| {
            assert_eq!(questions, [3, 4], "the question of a caller that is gone is left out");
            pending()
        }));
        let mut third = Box::pin(batches.ask(4, double));
        poll(&mut gone).await;
        poll(&mut second).await;
        poll(&mut third).await;
        drop(gone);
        end.send(()).unwrap();
        assert_eq!(first.await, 2);
        poll(&mut second).await;
        drop(second);
        assert_eq!(third.await, 8);
    }
}
