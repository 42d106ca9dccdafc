//! Asynchronous receive: samples of a reader as a future ([`DataReader::recv`]) and as a stream
//! ([`DataReader::stream`]). An alternative to listeners and wait sets, not part of DDS 1.4.
//!
//! A poll that finds no sample registers its waker. The events that raise `DATA_AVAILABLE` wake it,
//! with no lock held. Any async executor works, and no async runtime is required. Under
//! [`Runtime::Shared`](crate::Runtime::Shared) the thread `takt-rx` wakes tasks. Under
//! [`Runtime::Inline`](crate::Runtime::Inline) polling receives nothing: the owner's thread polls,
//! and drives the participant with [`spin_once`](crate::DomainParticipant::spin_once), which wakes
//! tasks.
//!
//! Invariants:
//! - No wakeup is lost: the waker is registered under the lock under which no sample was found.
//! - A sample is taken only by the poll that returns it. Dropping a pending future loses no sample.
//! - Several tasks may wait on one reader. All are woken; each sample goes to one of them.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::stream::{FusedStream, Stream};

use crate::runtime::tasks::TaskKey;
use crate::{DataReader, Error, Readable, Result, Sample};

/// Stream that takes the samples of a reader one by one. Created by [`DataReader::stream`].
///
/// Ends with `None` when the reader or its participant is closed, and after an error.
///
/// # Examples
/// ```
/// use takt::{DdsType, DomainParticipant, qos::*};
/// # use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Wake, Waker}, thread::Thread};
/// # struct Unpark(Thread);
/// # impl Wake for Unpark {
/// #     fn wake(self: Arc<Self>) {
/// #         self.0.unpark();
/// #     }
/// # }
/// # /// The smallest executor; `futures::executor::block_on` does the same.
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(std::thread::current()))));
/// #     loop {
/// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
/// #             Poll::Ready(output) => return output,
/// #             Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
///
/// #[derive(DdsType, Clone, Debug, Default)]
/// struct Tick {
///     number: u32,
/// }
///
/// # fn main() -> takt::Result<()> {
/// # let name = format!("Tick{}", std::process::id());
/// let participant = DomainParticipant::builder(231).interfaces(["lo"]).build()?;
/// let topic = participant.create_topic::<Tick>(&name, TopicQos::default())?;
/// let qos = DataReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..Default::default() };
/// let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
/// let qos = DataWriterQos { history: History::KeepAll, ..Default::default() };
/// let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
///
/// block_on(async {
///     let mut ticks = reader.stream();
///     for number in 0..3 {
///         writer.write_async(&Tick { number }).await?;
///     }
///     for number in 0..3 {
///         let tick = ticks.next().await.expect("the reader is open")?;
///         assert_eq!(tick.data.map(|tick| tick.number), Some(number));
///     }
///     reader.close()?;
///     assert!(ticks.next().await.is_none());
///     Ok(())
/// })
/// # }
/// ```
///
/// # Errors
/// [`Error::IllegalOperation`] if a participant under `Runtime::Inline` is polled from a thread
/// that does not own it.
#[must_use = "a stream does nothing unless it is polled"]
pub struct SampleStream<T: Readable> {
    reader: DataReader<T>,
    task: Option<TaskKey>,
    ended: bool,
}

impl<T: Readable> SampleStream<T> {
    pub(crate) fn new(reader: DataReader<T>) -> Self {
        Self { reader, task: None, ended: false }
    }

    /// Returns the reader from which samples are taken.
    #[must_use]
    pub fn reader(&self) -> &DataReader<T> {
        &self.reader
    }

    /// Returns the next sample; `None` when the stream has ended. Dropping the future loses no
    /// sample.
    ///
    /// # Errors
    /// Returns the errors of the stream, which ends with an error.
    pub async fn next(&mut self) -> Option<Result<Sample<T>>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Sample<T>>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let taken = self.reader.take_or_register(&mut self.task, cx.waker());
        let Some(result) = taken.transpose() else { return Poll::Pending };
        self.ended = result.is_err();
        Poll::Ready(match result {
            Err(Error::AlreadyDeleted) => None,
            result => Some(result),
        })
    }
}

impl<T: Readable> Stream for SampleStream<T> {
    type Item = Result<Sample<T>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(cx)
    }
}

impl<T: Readable> FusedStream for SampleStream<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T: Readable> Drop for SampleStream<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task {
            self.reader.remove_task(task);
        }
    }
}

impl<T: Readable> fmt::Debug for SampleStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleStream").field("reader", &self.reader).field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<T: Readable> DataReader<T> {
    /// Returns a stream that takes the samples of this reader one by one, for `async` code under
    /// any executor.
    ///
    /// Several streams of one reader share its samples. Under
    /// [`Runtime::Inline`](crate::Runtime::Inline) the thread that polls must also drive the
    /// participant with [`spin_once`](crate::DomainParticipant::spin_once).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn f<T: takt::TypeSupport>(reader: &takt::DataReader<T>) -> takt::Result<()> {
    /// let mut samples = reader.stream();
    /// while let Some(sample) = samples.next().await {
    ///     println!("written at {}", sample?.info.source_timestamp);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn stream(&self) -> SampleStream<T> {
        SampleStream::new(self.clone())
    }

    /// Waits for a sample and takes it. Dropping the future loses no sample, so it can be used in
    /// `select!`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] when the reader or its participant is closed;
    /// [`Error::IllegalOperation`] if a participant under
    /// [`Runtime::Inline`](crate::Runtime::Inline) is polled from a thread that does not own it.
    pub async fn recv(&self) -> Result<Sample<T>> {
        self.stream().next().await.unwrap_or(Err(Error::AlreadyDeleted))
    }
}
