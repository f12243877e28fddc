"""From an uploaded file to typed chunks and a data sheet.

`parser` is the service's side: it hands an open file to a child process and gets a description back.
Everything else runs in that child, which has a memory limit, a time limit and no credentials: a hostile
file may end the child, never the service. A file is read block by block, text formats twice: the first
pass decides every column's type over the whole file, the second converts.
"""
