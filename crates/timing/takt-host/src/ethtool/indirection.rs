//! Distribution over queues of frames to which no rule applies (`ethtool -X`; linux/ethtool.h:
//! `ethtool_rxfh_indir`).
//!
//! Its text is `default`, which is all queues in turn, or the queue of each entry of the driver's
//! table.

use std::io;

use super::{Driver, command, get, put};

const QUEUES: u32 = 0x2d;
const GET: u32 = 0x38;
const SET: u32 = 0x39;
const SIZE_AT: usize = 4;
const TABLE_AT: usize = 8;
const DATA_AT: usize = 8;
/// Maximum number of entries that are read. No driver has as many.
const SIZE_MAX: u32 = 65_536;

/// Returns the table as queue numbers, and the number of queues.
///
/// # Errors
/// `EOPNOTSUPP` if the driver has no table.
pub(crate) fn table(driver: &Driver<'_>, interface: &str) -> io::Result<(Vec<u32>, u32)> {
    let mut octets = command(GET, 0);
    driver(interface, &mut octets)?;
    let size = get(&octets, SIZE_AT).min(SIZE_MAX);
    let mut octets = command(GET, 4 * size as usize);
    put(&mut octets, SIZE_AT, size);
    driver(interface, &mut octets)?;
    let table = (0..size as usize).map(|index| get(&octets, TABLE_AT + 4 * index)).collect();
    let mut octets = command(QUEUES, 0);
    driver(interface, &mut octets)?;
    Ok((table, get(&octets, DATA_AT)))
}

/// Returns the table as text.
pub(crate) fn read(driver: &Driver<'_>, interface: &str) -> io::Result<String> {
    let (table, queues) = table(driver, interface)?;
    if table.iter().zip(0..).all(|(queue, index)| *queue == index % queues.max(1)) {
        return Ok("default".to_owned());
    }
    Ok(table.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// Returns the text of a table with all queues but one in turn. `queues` must be at least 2.
pub(crate) fn without(table_len: usize, queue: u32, queues: u32) -> String {
    let others: Vec<_> = (0..queues).filter(|other| *other != queue).map(|other| other.to_string()).collect();
    others.iter().cycle().take(table_len).map(String::as_str).collect::<Vec<_>>().join(",")
}

/// Writes the table.
pub(crate) fn write(driver: &Driver<'_>, interface: &str, text: &str) -> io::Result<()> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("{text:?} is not a list of queues"));
    let queues: Vec<u32> = match text {
        "default" => Vec::new(),
        list => list.split(',').map(|queue| queue.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?,
    };
    // A table without entries selects the driver's default.
    let mut octets = command(SET, 4 * queues.len());
    put(&mut octets, SIZE_AT, u32::try_from(queues.len()).map_err(|_| wrong())?);
    queues.iter().enumerate().for_each(|(index, queue)| put(&mut octets, TABLE_AT + 4 * index, *queue));
    driver(interface, &mut octets)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn queue_is_excluded_and_default_restores_all() {
        let table = RefCell::new(vec![0_u32, 1, 2, 3, 0, 1, 2, 3]);
        let driver = |_: &str, octets: &mut [u8]| {
            let mut table = table.borrow_mut();
            let size = get(octets, SIZE_AT) as usize;
            match get(octets, 0) {
                QUEUES => put(octets, DATA_AT, 4),
                GET if size == 0 => put(octets, SIZE_AT, table.len() as u32),
                GET => table.iter().enumerate().for_each(|(i, queue)| put(octets, TABLE_AT + 4 * i, *queue)),
                SET if size == 0 => *table = (0..8).map(|index| index % 4).collect(),
                // `ethtool -X eth0 weight 1 1 1 0` of ethtool 6.1 sends 39 00 00 00, 08 00 00 00,
                // and eight numbers.
                SET => *table = (0..size).map(|index| get(octets, TABLE_AT + 4 * index)).collect(),
                other => panic!("{other}"),
            }
            Ok(())
        };
        assert_eq!(read(&driver, "eth0").expect("success"), "default");
        write(&driver, "eth0", &without(8, 3, 4)).expect("success");
        assert_eq!(read(&driver, "eth0").expect("success"), "0,1,2,0,1,2,0,1");
        write(&driver, "eth0", "default").expect("success");
        assert_eq!(read(&driver, "eth0").expect("success"), "default");
        assert_eq!(write(&driver, "eth0", "1,x").map_err(|e| e.kind()), Err(io::ErrorKind::InvalidInput));
    }
}
