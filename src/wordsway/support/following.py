"""The first thing that a worker process does: it follows its parent. This module imports nothing heavy, so that a
worker whose parent is killed while it starts does not first load its libraries."""

import os
import signal
import threading

WORKER = "WORDSWAY_WORKER"  # in the environment of a worker while it starts


def follow_parent() -> None:
    """In a worker: Ctrl-C is the driver's business; when the driver is gone, so is the worker."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    _end_with_parent(None if parent is None else parent.pid)

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _end_with_parent(parent: int | None) -> None:
    """On Linux, ask the kernel too: a thread cannot end a process while a library that is being loaded holds Python's
    lock. The signal comes when the thread that started this process ends; an engine starts and stops its workers in
    one thread."""
    import ctypes
    import sys

    if not sys.platform.startswith("linux"):
        return
    death_signal = 1  # PR_SET_PDEATHSIG
    try:
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    except (OSError, AttributeError):
        return  # another libc: the thread follows
    if parent is not None and os.getppid() != parent:  # it went before the kernel was asked
        os._exit(1)


def leave_unguarded_script() -> None:
    """End a worker that, while it starts, is asked to start workers itself: it reads its parent's script, in which the
    call does not stand below `if __name__ == '__main__':`. Its parent says so, once and for all workers."""
    import multiprocessing

    starting = getattr(multiprocessing.current_process(), "_inheriting", False)
    if starting and WORKER in os.environ:
        os._exit(1)


def answer() -> None:
    """Do nothing: a worker that returns from it has started."""
