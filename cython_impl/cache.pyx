"""`RadixCache`: the protocol over one tree.

Every method converts its arguments first, then enters the forest; from there to the end of the change no Python code
runs and no object is made, since both could let other code at the same cache.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from triradix.arguments import shown
from triradix.config import POLICIES, check_config
from triradix.results import Node as AnyNode

from .batch cimport match_many, peek_many
from .check cimport check_forest
from .compare cimport are_tokens
from .events cimport CLEARED, event_free, event_new, event_object, event_queue
from .eviction cimport evict_from
from .hash_functions cimport DIGEST, namespace_seed
from .hashing cimport path_digests
from .insert cimport Insertion, insert_pages
from .key cimport Key, key_count, key_from, key_token
from .keys cimport (
    Slots, Tokens, check_tokens, count_of, int64_of, length_of, namespace_of, no_slots, recall, release_slots,
    release_tokens, remember, same_length, take_slots, take_slowly, take_tokens,
)
from .locks cimport lock_page, unlock_page
from .log cimport RESET, hand_over, note
from .printing cimport print_forest
from .results cimport InsertResult, MatchResult, Node, array_data, new_array, place_of
from .slab cimport slab_live
from .spaces cimport Forest
from .span cimport read_slots
from .tree cimport (
    FIFO, FILO, LFU, PRIORITY, SLRU, Detail, Event, Handle, Place, Policy, Run, Tree, Weight, detail_of, length_of_run,
    page_tokens, run_at,
)
from .walk cimport (
    DONE, NO_MEMORY, OUTSIDE, Answer, gather, match_pages, reserve_touch, units_of, walk_on,
)


@cython.final
cdef class RadixCache:
    """A prefix cache over C structs (see `triradix.PrefixCache` for what each method does)."""

    cdef Forest forest
    cdef object config
    cdef object __weakref__

    def __cinit__(
        self, *, page_size=1, eviction_policy="lru", bigram=False, slru_threshold=2, enable_kv_cache_events=False
    ):
        cdef Tree *tree
        self.config = check_config(page_size, eviction_policy, bigram, slru_threshold, enable_kv_cache_events)
        self.forest = Forest()
        tree = &self.forest.tree
        # A page of more units than any key holds is like any other such page; half the range leaves room for sums.
        tree.page = min(self.config.page_size, INT64_MAX // 16)
        tree.overlap = self.config.bigram
        tree.policy = <Policy> <int> POLICIES.index(self.config.eviction_policy)
        tree.slru_threshold = min(self.config.slru_threshold, INT64_MAX)
        tree.by_last = tree.policy != FIFO and tree.policy != FILO
        tree.by_hits = tree.policy == LFU or tree.policy == SLRU
        tree.by_priority = tree.policy == PRIORITY
        tree.has_weights = tree.by_hits or tree.by_priority
        if tree.has_weights:
            tree.marks.column_size = sizeof(Weight)
        tree.events_on = self.config.enable_kv_cache_events

    @property
    def page_size(self):
        """Units a page, as given."""
        return self.config.page_size

    @property
    def eviction_policy(self):
        """The policy, as given."""
        return self.config.eviction_policy

    @property
    def bigram(self):
        """Whether units are pairs of tokens, as given."""
        return self.config.bigram

    @property
    def slru_threshold(self):
        """Hits from which a page is protected under ``slru``, as given."""
        return self.config.slru_threshold

    @property
    def enable_kv_cache_events(self):
        """Whether events are kept, as given."""
        return self.config.enable_kv_cache_events

    # Find.

    def match_prefix(self, key, extra_key=None, *, start=None):
        """Find the longest cached prefix of ``key`` and refresh its pages."""
        cdef Tokens tokens
        cdef MatchResult result = MatchResult.__new__(MatchResult)
        cdef Place place
        cdef Answer answer
        cdef bint done = False
        result.forest = self.forest
        try:
            take_tokens(key, &tokens)
            result.name = self.name_of(extra_key, start)
            while not done:
                place = self.begin(start, result.name, tokens.key)
                result.start = place.depth
                answer = match_pages(
                    &self.forest.tree, place, self.known(start, &tokens), tokens.key, &result.handle
                )
                done = answer == DONE
                if not done:
                    self.try_again(answer, key, &tokens)
            if start is None:
                remember(&tokens, self.forest.number, &result.handle)
        finally:
            if not done:
                check_tokens(key, &tokens)
            release_tokens(&tokens)
        return result

    def match_prefix_many(self, keys, extra_keys=None, *, threads=None):
        """``match_prefix`` of each key in order, in one crossing; on up to ``threads`` cores, without the GIL."""
        return match_many(self.forest, keys, extra_keys, threads)

    def peek_prefix(self, key, extra_key=None, *, start=None):
        """The length that ``match_prefix`` would find; changes nothing."""
        cdef Tokens tokens
        cdef Place place
        cdef Place found
        cdef int64_t units
        cdef Tree *tree = &self.forest.tree
        cdef bint done = False
        try:
            take_tokens(key, &tokens)
            name = self.name_of(extra_key, start)
            while not done:
                place = self.begin(start, name, tokens.key)
                units = units_of(tree, key_count(tokens.key))
                found = walk_on(tree, place, self.known(start, &tokens), tokens.key, units)
                # What was not compared with tokens may be none.
                done = are_tokens(key_from(tokens.key, found.depth - place.depth))
                if not done:
                    self.try_again(OUTSIDE, key, &tokens)
        finally:
            if not done:
                check_tokens(key, &tokens)
            release_tokens(&tokens)
        return found.depth

    def peek_prefix_many(self, keys, extra_keys=None, *, threads=None):
        """``peek_prefix`` of each key: lengths, shape ``(len(keys),)``."""
        return peek_many(self.forest, keys, extra_keys, threads)

    # Keep.

    def insert(self, key, values, extra_key=None, *, priority=0, start=None, inserted_len=0):
        """Cache the whole pages of ``key`` with the slots ``values``."""
        cdef Tokens tokens
        cdef Slots slots
        cdef Insertion insertion
        cdef InsertResult result = InsertResult.__new__(InsertResult)
        cdef uint8_t[DIGEST] seed
        cdef Answer answer
        cdef bint done = False
        no_slots(&slots)
        result.forest = self.forest
        try:
            take_tokens(key, &tokens)
            result.name = self.name_of(extra_key, start)
            same_length(length_of(values), key_count(tokens.key))
            take_slots(values, &slots)
            same_length(slots.count, key_count(tokens.key))
            insertion.priority = int64_of(priority, "priority")
            insertion.inserted_len = count_of(inserted_len, "inserted_len")
            insertion.slots = slots.data
            insertion.seed = seed
            insertion.seed_size = namespace_seed(result.name, seed) if self.forest.tree.events_on else 0
            while not done:
                insertion.key = tokens.key
                insertion.units = units_of(&self.forest.tree, key_count(tokens.key))
                insertion.known = self.known(start, &tokens)
                answer = self.insert_below(self.begin(start, result.name, tokens.key), &insertion, result)
                done = answer == DONE
                if not done:
                    self.try_again(answer, key, &tokens)
                    same_length(slots.count, key_count(tokens.key))
            if start is None:
                remember(&tokens, self.forest.number, &result.handle)
        finally:
            try:
                if not done:
                    check_tokens(key, &tokens)
            finally:
                release_tokens(&tokens)
                release_slots(&slots)
        if self.forest.tree.noted != NULL:
            hand_over(self.forest)
        return result

    cdef Answer insert_below(self, Place place, Insertion *insertion, InsertResult result) except *:
        cdef Tree *tree = &self.forest.tree
        cdef bint made_root = place.run == 0 and insertion.units > 0
        cdef Event *last_event = tree.last_event
        cdef Answer answer
        result.handle.length = place.depth + insertion.units
        if made_root:
            place = self.forest.make_root(result.name)
        answer = insert_pages(tree, place, insertion)
        if answer != DONE:
            if made_root:
                self.forest.drop_space(detail_of(tree, place.run).space)
            return answer
        if tree.last_event != last_event:
            self.forest.name_event(tree.last_event, result.name)
        result.prefix = insertion.prefix
        result.handle.birth = insertion.birth
        result.handle.creation = insertion.creation
        return DONE

    def inc_lock_ref(self, node):
        """Lock every page from ``node`` to the root: the units that became protected."""
        cdef int64_t locked
        cdef Place place = self.node_place(node)
        if place.depth == 0:
            return 0
        if reserve_touch(&self.forest.tree):
            raise MemoryError
        locked = lock_page(&self.forest.tree, place.run, place.depth)
        if locked < 0:
            raise ValueError("this node's page has as many locks as can be counted")
        return locked

    def dec_lock_ref(self, node):
        """Take back one ``inc_lock_ref`` of the same page: the units that became evictable."""
        cdef Tree *tree = &self.forest.tree
        cdef Place place = self.node_place(node)
        cdef int64_t released
        if place.depth == 0:
            return 0
        released = unlock_page(tree, place.run, place.depth)
        if released < 0:
            raise ValueError("no lock of this node's page is left to take back")
        return released

    # Free.

    def evict(self, num_tokens):
        """Free pages by the policy until at least ``num_tokens`` units are free."""
        result = evict_from(self.forest, False, None, count_of(num_tokens, "num_tokens"))
        if self.forest.tree.noted != NULL:
            hand_over(self.forest)
        return result

    def evict_namespace(self, extra_key, num_tokens=None):
        """``evict`` among the pages of one namespace; None: as many as can go."""
        name = namespace_of(extra_key)
        wanted = INT64_MAX if num_tokens is None else count_of(num_tokens, "num_tokens")
        result = evict_from(self.forest, True, name, wanted)
        if self.forest.tree.noted != NULL:
            hand_over(self.forest)
        return result

    def reset(self):
        """Drop everything. All nodes become stale; queued events stay."""
        cdef Event *event = NULL
        if self.forest.tree.events_on:
            event = event_new(CLEARED, 0, 0)
            if event == NULL:
                raise MemoryError
        self.forest.enter()
        note(&self.forest.tree, RESET, self.forest.tree.total, 0)
        self.forest.clear()
        self.forest.names.clear()
        if event != NULL:
            event_queue(&self.forest.tree, event)
        if self.forest.tree.noted != NULL:
            hand_over(self.forest)

    # Look.

    def path_indices(self, node, start=0):
        """The slots of the node's path from unit ``start`` on."""
        cdef int64_t first = count_of(start, "start")
        cdef Place place = self.node_place(node)
        array = new_array(max(place.depth - first, <int64_t> 0))
        place = self.node_place(node)
        gather(&self.forest.tree, place, first, array_data(array))
        return array

    def all_indices(self):
        """Every cached slot once, in no particular order."""
        cdef Tree *tree = &self.forest.tree
        cdef int64_t total = -1
        cdef int64_t *slots
        cdef uint32_t at
        cdef const Run *run
        cdef const Detail *detail
        self.forest.enter()
        while total != tree.total:
            total = tree.total
            array = new_array(total)
            self.forest.enter()
        slots = array_data(array)
        for at in range(1, tree.runs.used):
            run = run_at(tree, at)
            detail = detail_of(tree, at)
            if detail.space and run.parent:
                read_slots(detail.span, detail.offset, length_of_run(run), slots)
                slots += length_of_run(run)
        return array

    def total_size(self):
        """Cached units."""
        return self.forest.tree.total

    def evictable_size(self):
        """Units without a lock."""
        return self.forest.tree.total - self.forest.tree.locked

    def protected_size(self):
        """Units of locked pages."""
        return self.forest.tree.locked

    def stats(self):
        """Counts since the start or the last ``reset``, and what the tree takes."""
        cdef Tree *tree = &self.forest.tree
        cdef Tree now
        cdef int64_t memory
        self.forest.enter()
        now = tree[0]
        memory = self.forest.memory_bytes()
        return {
            "lookups": now.lookups,
            "lookup_tokens": now.lookup_tokens,
            "hit_tokens": now.hit_tokens,
            "inserts": now.inserts,
            "inserted_tokens": now.inserted_tokens,
            "evicted_tokens": now.evicted_tokens,
            "total_tokens": now.total,
            "nodes": slab_live(&now.runs),
            "memory_bytes": memory,
        }

    def block_hashes(self, node):
        """The 32-byte digest of each page of the node's path."""
        cdef uint8_t[DIGEST] seed
        cdef uint8_t *digests
        cdef Place place = self.node_place(node)
        cdef int seed_size = namespace_seed((<Node> node).name, seed)
        cdef int64_t count = place.depth // self.forest.tree.page
        cdef int64_t i
        cdef list taken = []
        if count == 0:
            return taken
        digests = <uint8_t *> malloc(count * DIGEST)
        if digests == NULL:
            raise MemoryError
        try:
            place = self.node_place(node)
            if path_digests(&self.forest.tree, place, seed, seed_size, digests):
                raise MemoryError
            for i in range(count):
                taken.append((<char *> digests)[i * DIGEST : i * DIGEST + DIGEST])
            return taken
        finally:
            free(digests)

    def take_events(self):
        """Hand over and clear the queue of events, oldest first."""
        cdef Tree *tree = &self.forest.tree
        cdef Event *first
        cdef Event *event
        cdef list taken = []
        self.forest.enter()
        first = event = tree.first_event
        tree.first_event = tree.last_event = NULL
        tree.event_bytes = 0
        try:
            while event != NULL:
                taken.append(event_object(event, self.config.page_size, self.config.bigram))
                event = event.next
        except BaseException:
            self.forest.requeue(first)
            raise
        while first != NULL:
            event = first.next
            event_free(first)
            first = event
        return taken

    def check(self):
        """Walk every invariant of the tree; IntegrityError names the one that broke."""
        check_forest(self.forest)

    def _miscount(self):
        """For tests of what a failed check does: every check until the next reset fails."""
        self.forest.tree.total += 1

    def pretty_print(self, file=None):
        """Write the tree for people to ``file`` (stdout; nowhere if there is none)."""
        print_forest(self.forest, repr(self), file)

    def __repr__(self):
        cdef Tree *tree = &self.forest.tree
        return (
            f"<triradix.cython_impl.RadixCache page_size={shown(self.config.page_size)} {self.config.eviction_policy}"
            f"{' bigram' if self.config.bigram else ''}: {tree.total} units, {tree.locked} protected>"
        )

    def __reduce__(self):
        raise TypeError("RadixCache objects can be neither copied nor pickled")

    # Nodes.

    cdef Node own_node(self, object node, str what):
        if type(node) is not Node:
            if isinstance(node, AnyNode):
                raise ValueError(f"{what} belongs to another cache")
            raise TypeError(f"{what} must be a Node, not {type(node).__name__}")
        if (<Node> node).forest is not self.forest:
            raise ValueError(f"{what} belongs to another cache")
        return node

    cdef Place node_place(self, object node) except *:
        """Where a node given by the caller is, after `Forest.enter`."""
        cdef Node own = self.own_node(node, "node")
        self.forest.enter()
        return place_of(self.forest, &own.handle, own.name)

    cdef object name_of(self, object extra_key, object start):
        """The namespace of a call; that of ``start`` if it was left out. A wrong start is named later."""
        if extra_key is None and type(start) is Node:
            return (<Node> start).name
        return namespace_of(extra_key)

    cdef inline const Handle *known(self, object start, const Tokens *tokens) noexcept:
        """The page that a key, which is given whole, is known to begin with."""
        return recall(tokens, self.forest.number) if start is None else NULL

    cdef int try_again(self, Answer answer, object key, Tokens *tokens) except -1:
        """Go on with a checked copy of a key that another thread changes; raise what is wrong otherwise."""
        if answer == NO_MEMORY:
            raise MemoryError
        return take_slowly(key, tokens)

    cdef inline Place begin(self, object start, object name, Key key) except *:
        """Where a call begins, after `Forest.enter`: ``start``, or the root of the namespace."""
        if start is None:
            self.forest.enter()
            return self.forest.root_of(name)
        return self.begin_below(start, name, key)

    cdef Place begin_below(self, object start, object name, Key key) except *:
        cdef Node own = self.own_node(start, "start")
        cdef Place place
        cdef uint32_t last_token
        if name != own.name:
            raise ValueError("extra_key is not the namespace of start")
        self.forest.enter()
        place = place_of(self.forest, &own.handle, own.name)
        if self.forest.tree.overlap and place.depth:
            last_token = page_tokens(run_at(&self.forest.tree, place.run), place.depth)[0]
            if key_count(key) == 0 or key_token(key, 0) != last_token:
                raise ValueError(f"with bigram, a key below a node must begin with the node's last token, {last_token}")
        return place
