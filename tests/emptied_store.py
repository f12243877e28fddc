"""The shared servers without what a module of tests has left: names of models need not differ between modules."""

from sqlalchemy import text

from app.services.jobs.jobs import Jobs
from app.services.predictions.pointer_cache import Pointers


def empty(work, pointers):
    """Cancel the jobs that have not ended, delete the models with their numbers, and forget them in these caches."""
    with work() as w:
        unfinished = w.session.scalars(text("select id from jobs where finished_at is null")).all()
        names = w.session.scalars(text("select name from models")).all()
    for job in unfinished:
        Jobs(work, Pointers(work, 0.0)).cancel(job)
    with work() as w:
        w.session.execute(text("delete from aliases"))
        w.session.execute(text("delete from alias_moves"))
        w.session.execute(text("delete from models"))
    for cache in pointers:
        for name in names:
            cache.changed(name)
