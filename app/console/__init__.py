"""The console: pages for people in a browser, made of scripts without a build, and one more client of the API.

`site` serves the files beside it. `app.mjs` is the frame and the router. Pages are in `pages`, one file each; what they
share is in `parts` (requests in `api.mjs`, markup in `view.mjs`), pictures are in `charts`, and files of others in
`vendor`, as their packages have them.
"""
