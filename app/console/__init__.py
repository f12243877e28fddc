"""The console: pages for people in a browser, made of scripts without a build, and one more client of the API.

`site` serves the files beside it. `app.mjs` is the frame and the router; a page is one file, and `view.mjs` holds what
pages share. Files of others are in `vendor`, as their packages have them.
"""
