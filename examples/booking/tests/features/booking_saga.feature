# A tag names what carries the messages. Every scenario runs on each of them.
@memory @rabbitmq @sqs
Feature: A seat is booked, paid and confirmed as a whole, or not at all

  The booking service, the payment service and the notification service each have a database of their own.
  An orchestrator asks one after the other, and waits for the event with which each of them answers.
  It keeps the seat in the seat map before it asks, and takes it for good behind the payment.
  While it works on a booking, no other booking touches the account of the same card.

  Background:
    Given Ada wants seat "12A" and has a good card

  Scenario: All goes well
    When Ada books the seat
    Then the saga state should be "AWAITING_BOOKING"
    When a "BookingCreated" event is received from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    When a "PaymentProcessed" event is received from the payment service
    Then the saga state should be "AWAITING_NOTIFICATION"
    When a "NotificationSent" event is received from the notification service
    Then the saga state should be "COMPLETED"
    And seat "12A" is booked for Ada
    And her card is charged 1 time
    And Ada got 1 mail

  Scenario: The payment fails, and the booking is cancelled
    Given her card is declined
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    And seat "12A" is booked for Ada
    When a "PaymentFailed" event is received from the payment service
    Then the saga state should be "CANCELLING_BOOKING"
    When a "BookingCancelled" event is received from the booking service
    Then the saga state should be "CANCELLED"
    And seat "12A" is free
    And her card is charged 0 times

  Scenario: The seat is taken, and nothing is paid
    Given seat "12A" is booked for Grace
    When Ada books the seat
    Then the saga state should be "CANCELLED"
    And seat "12A" is booked for Grace
    And her card is charged 0 times

  Scenario: Two want the same seat, and one of them gets it
    Given Grace wants seat "12A" and has a good card of her own
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And Grace books the seat
    Then the saga state of Grace should be "CANCELLED"
    And seat "12A" is booked for Ada
    When every event is received as soon as it is sent
    Then the saga state should be "COMPLETED"
    And seat "12A" is booked for Ada
    And her card is charged 1 time
    And the card of Grace is charged 0 times
    And Grace got 0 mails

  Scenario: The seat of a booking that is cancelled can be booked by another
    Given her card is declined
    And Grace wants seat "12A" and has a good card of her own
    When Ada books the seat
    And every event is received as soon as it is sent
    Then the saga state should be "CANCELLED"
    When Grace books the seat
    And every event for Grace is received as soon as it is sent
    Then the saga state of Grace should be "COMPLETED"
    And seat "12A" is booked for Grace
    And the card of Grace is charged 1 time

  Scenario: A request that reaches the booking service too late books nothing
    Given the booking service knows a later reservation of seat "12A"
    When Ada books the seat
    And a "BookingFailed" event is received from the booking service
    Then the saga state should be "CANCELLED"
    And seat "12A" is free
    And her card is charged 0 times

  Scenario: Two bookings with one card come one after the other
    Given Grace wants seat "12B" and has the same card
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    When Grace books the seat
    Then the saga state of Grace should be "AWAITING_CARD"
    And seat "12B" is free
    When every event is received as soon as it is sent
    Then the saga state should be "COMPLETED"
    When every event for Grace is received as soon as it is sent
    Then the saga state of Grace should be "COMPLETED"
    And seat "12B" is booked for Grace
    And her card is charged 2 times
    And the services had done everything for Ada before they began for Grace

  Scenario: The next booking with a card goes on when the one before is cancelled
    Given her card is declined
    And Grace wants seat "12B" and has the same card
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And Grace books the seat
    And a "PaymentFailed" event is received from the payment service
    Then the saga state should be "CANCELLING_BOOKING"
    And the saga state of Grace should be "AWAITING_CARD"
    When a "BookingCancelled" event is received from the booking service
    Then the saga state should be "CANCELLED"
    When a "BookingCreated" event for Grace is received from the booking service
    Then the saga state of Grace should be "AWAITING_PAYMENT"
    And the services had done everything for Ada before they began for Grace

  Scenario: The orchestrator is killed while one booking waits for the card of another
    Given Grace wants seat "12B" and has the same card
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And Grace books the seat
    And the orchestrator is killed
    And the orchestrator is started again
    Then the saga state of Grace should be "AWAITING_CARD"
    When every event is received as soon as it is sent
    And every event for Grace is received as soon as it is sent
    Then the saga state of Grace should be "COMPLETED"
    And the services had done everything for Ada before they began for Grace

  Scenario: No mail is sent about a booking that is not paid
    Given her card is declined
    When Ada books the seat
    And every event is received as soon as it is sent
    Then the saga state should be "CANCELLED"
    And Ada got 0 mails

  Scenario: A duplicate event changes nothing
    When Ada books the seat
    And a "BookingCreated" event is received 3 times from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    When a "PaymentProcessed" event is received 3 times from the payment service
    Then the saga state should be "AWAITING_NOTIFICATION"
    When a "NotificationSent" event is received 3 times from the notification service
    Then the saga state should be "COMPLETED"
    And her card is charged 1 time
    And Ada got 1 mail

  Scenario: A duplicate of a request changes nothing
    When Ada books the seat
    And Ada books the seat
    And every event is received as soon as it is sent
    Then the saga state should be "COMPLETED"
    And her card is charged 1 time
    And Ada got 1 mail

  Scenario Outline: It is unknown whether the card was charged, so the payment service asks
    Given the first <message> of the card processor is lost
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    When a "PaymentProcessed" event is received from the payment service
    And a "NotificationSent" event is received from the notification service
    Then the saga state should be "COMPLETED"
    And the card processor was asked 1 time what became of a payment
    And her card is charged 1 time

    Examples:
      | message |
      | request |
      | answer  |

  Scenario: The orchestrator is killed while it waits for the payment
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    Then the saga state should be "AWAITING_PAYMENT"
    When the orchestrator is killed
    And a "PaymentProcessed" event is sent by the payment service
    Then the saga state should be "AWAITING_PAYMENT"
    When the orchestrator is started again
    Then the saga state should be "AWAITING_NOTIFICATION"
    When a "NotificationSent" event is received from the notification service
    Then the saga state should be "COMPLETED"
    And her card is charged 1 time
    And Ada got 1 mail

  Scenario: The orchestrator is killed while it cancels the booking
    Given her card is declined
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And a "PaymentFailed" event is received from the payment service
    Then the saga state should be "CANCELLING_BOOKING"
    When the orchestrator is killed
    And a "BookingCancelled" event is sent by the booking service
    And the orchestrator is started again
    Then the saga state should be "CANCELLED"
    And seat "12A" is free

  Scenario: The mail server is down behind the pivot, and nothing is undone
    Given the mail server is down
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And a "PaymentProcessed" event is received from the payment service
    Then the mail server has failed 3 times
    And the saga state should be "AWAITING_NOTIFICATION"
    And seat "12A" is booked for Ada
    When the mail server is up again
    And a "NotificationSent" event is received from the notification service
    Then the saga state should be "COMPLETED"
    And her card is charged 1 time
    And Ada got 1 mail

  Scenario: A mail that cannot be sent behind the pivot waits for an operator
    Given Ada has no mailbox
    When Ada books the seat
    And a "BookingCreated" event is received from the booking service
    And a "PaymentProcessed" event is received from the payment service
    And a "NotificationFailed" event is received from the notification service
    Then the saga state should be "NEEDS_OPERATOR"
    And seat "12A" is booked for Ada
    And her card is charged 1 time
    When an operator makes a mailbox for Ada, and retries the notification
    And a "NotificationSent" event is received from the notification service
    Then the saga state should be "COMPLETED"
    And Ada got 1 mail
