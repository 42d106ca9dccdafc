//! Environment of the experiment: a network namespace, the permission for real-time priorities, and
//! scheduling statistics of threads.

use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use std::mem;
use std::path::PathBuf;
use takt::real_time::{Scheduling, ThreadSettings};

/// Available features of the environment, and the reasons for missing ones.
pub struct Environment {
    namespace: std::result::Result<(), String>,
    real_time: std::result::Result<(), String>,
}

impl Environment {
    /// Moves the calling thread, and all that it starts later, to a network namespace of its own
    /// with the loopback interface up. Checks whether a thread may have a real-time priority.
    pub fn enter() -> Self {
        let settings = ThreadSettings { scheduling: Some(Scheduling::Fifo(1)), ..ThreadSettings::default() };
        let tried = std::thread::spawn(move || settings.apply().map_err(|why| why.to_string())).join();
        let real_time = tried.unwrap_or_else(|_| Err("the thread that tried it panicked".into()));
        Self { namespace: own_namespace().map_err(|why| why.to_string()), real_time }
    }

    /// Reports whether threads may have real-time priorities.
    pub fn is_real_time(&self) -> bool {
        self.real_time.is_ok()
    }

    /// Returns the missing features and the reasons.
    pub fn missing(&self) -> Vec<String> {
        let namespace = self.namespace.as_ref().err();
        let real_time = self.real_time.as_ref().err();
        let namespace = namespace.map(|why| format!("the network namespace is shared with others: {why}"));
        let real_time = real_time.map(|why| format!("no thread has a real-time priority or a core of its own: {why}"));
        namespace.into_iter().chain(real_time).collect()
    }
}

fn own_namespace() -> Result<()> {
    // SAFETY: takes no pointer.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(Error::last_os("unshare"));
    }
    // SAFETY: takes no pointer; the descriptor is closed below.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(Error::last_os("socket"));
    }
    // SAFETY: `ifreq` is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: `request` is a valid ifreq, whose name ends with a NUL.
    let is_up = unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &request) } == 0;
    let result = if is_up { Ok(()) } else { Err(Error::last_os("bring the loopback interface up")) };
    // SAFETY: the descriptor was opened above and is closed once.
    unsafe { libc::close(socket) };
    result
}

/// Scheduling statistics of a thread of this process, from /proc.
pub struct ThreadStats {
    task: PathBuf,
}

/// Scheduling statistics of a thread up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulingStats {
    /// Time for which the thread ran.
    pub ran_ns: u64,
    /// Time for which the thread was runnable and did not run: other threads ran, or the kernel was
    /// slow to wake it.
    pub waited_ns: u64,
    /// Number of preemptions.
    pub interrupted: u64,
}

impl ThreadStats {
    /// Finds the thread with this name.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn of(name: &str) -> Result<Self> {
        let tasks = std::fs::read_dir("/proc/self/task").map_err(|e| Error::os("/proc/self/task", e))?;
        let mut tasks = tasks.flatten().map(|task| task.path());
        let is_named =
            |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|it| it.trim_end() == name);
        let not_found = || Error::Usage(format!("no thread is called {name}"));
        Ok(Self { task: tasks.find(is_named).ok_or_else(not_found)? })
    }

    /// Reads the statistics up to now; 0 for a kernel that does not provide them.
    pub fn read(&self) -> SchedulingStats {
        let read = |file| std::fs::read_to_string(self.task.join(file)).unwrap_or_default();
        let times = read("schedstat");
        let mut times = times.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let status = read("status");
        let interrupted = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        SchedulingStats {
            ran_ns: times.next().unwrap_or(0),
            waited_ns: times.next().unwrap_or(0),
            interrupted: interrupted.and_then(|count| count.trim().parse().ok()).unwrap_or(0),
        }
    }
}

/// Periodic observation of a thread's scheduling statistics.
pub struct ThreadObserver {
    thread: ThreadStats,
    first: SchedulingStats,
    last: SchedulingStats,
    last_ns: u64,
    /// Start, end and wait time of each interval.
    samples: Vec<(u64, u64, u64)>,
}

impl ThreadObserver {
    /// Starts the observation of the thread with this name.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn begin(name: &str) -> Result<Self> {
        let thread = ThreadStats::of(name)?;
        let first = thread.read();
        Ok(Self { thread, first, last: first, last_ns: monotonic_ns(), samples: Vec::new() })
    }

    pub fn sample(&mut self) {
        let (now, now_ns) = (self.thread.read(), monotonic_ns());
        self.samples.push((self.last_ns, now_ns, now.waited_ns.saturating_sub(self.last.waited_ns)));
        (self.last, self.last_ns) = (now, now_ns);
    }

    /// Returns the statistics since the beginning.
    pub fn total(&self) -> SchedulingStats {
        SchedulingStats {
            ran_ns: self.last.ran_ns.saturating_sub(self.first.ran_ns),
            waited_ns: self.last.waited_ns.saturating_sub(self.first.waited_ns),
            interrupted: self.last.interrupted.saturating_sub(self.first.interrupted),
        }
    }

    /// Returns the wait time from the sample before `from_ns` to the sample after `to_ns`, an upper
    /// bound for the interval between.
    pub fn waited_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let overlaps = |(from, to, _): &&(u64, u64, u64)| *from <= to_ns && from_ns <= *to;
        self.samples.iter().filter(overlaps).map(|(_, _, waited_ns)| waited_ns).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_is_found_by_its_name() {
        let thread = std::thread::Builder::new().name("named-thread".into());
        let observer = || {
            let mut observer = ThreadObserver::begin("named-thread")?;
            let since = monotonic_ns();
            while observer.total().ran_ns == 0 && monotonic_ns() - since < 10_000_000_000 {
                observer.sample();
            }
            Ok::<_, Error>(observer)
        };
        let observer = thread.spawn(observer).unwrap().join().unwrap().unwrap();
        assert!(observer.total().ran_ns > 0);
        assert!(ThreadStats::of("no such thread").is_err());
    }

    #[test]
    fn wait_times_of_all_intervals_that_overlap_are_added() {
        let thread = ThreadStats { task: PathBuf::new() };
        let (first, last) = Default::default();
        let observer =
            ThreadObserver { thread, first, last, last_ns: 30, samples: vec![(0, 10, 1), (10, 20, 2), (20, 30, 4)] };
        assert_eq!([(3, 4), (5, 15), (21, 99), (40, 50)].map(|(from, to)| observer.waited_ns(from, to)), [1, 3, 4, 0]);
    }
}
