"""What ended processes had counted."""

from django.utils import timezone

from conversations import figures, tallies
from conversations.figures import Figures
from conversations.models import Process


def test_what_a_process_counted_is_added_once_by_two_who_clean_up_after_it(migrated: str) -> None:
    now = timezone.now()
    counted = figures.dump(Figures({("turns",): 3}))
    row = Process.objects.create(host="here", pid=1, started_at=now, seen_at=now, figures=counted)
    seen_by_two = [Process.objects.get(pk=row.pk) for _ in range(2)]
    for process in seen_by_two:
        tallies.archive(process)
    assert tallies.read().counters[("turns",)] == 3
    assert not Process.objects.filter(pk=row.pk).exists()
