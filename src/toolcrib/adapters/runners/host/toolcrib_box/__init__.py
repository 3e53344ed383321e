"""What runs around and inside a sandbox. Standard library only; nothing here may import Toolcrib.

Three processes, each the parent of the next:

    launcher    makes the namespaces, waits for the keeper, ends with it
    keeper      the first process of the process namespace: makes the file system, and ends everything inside when the
                service asks, is gone, or lets a deadline pass. When it ends, the kernel ends everything inside
    tool        the only one that runs a stranger's code, after it gave up every right

The service says what to build in an *order*, a JSON object, on the control socket. The first frame on the calls socket
says which walls stand, or which could not be built and why; it is sent before the stranger's code is loaded.
"""
